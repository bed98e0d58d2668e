"""The engine's encoders beside Python's own and the generated classes."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import encode_json, encode_protobuf, encode_records, time_ns
from tests.grpc.messages import SECOND_NS, WriteRequest

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Level(IntEnum):
    LOW = 3


class Mode(StrEnum):
    TX = "tx"


zones = st.one_of(st.none(), st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone))
datetimes = st.datetimes(timezones=zones)
plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(st.characters(), max_size=5),
        datetimes,
        st.sampled_from([Level.LOW, Mode.TX, date(2026, 1, 1), b"x", {1}, MappingProxyType({})]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(OrderedDict),
        st.dictionaries(st.sampled_from([1, None, True, 1.5]), inner, max_size=2),
    ),
    max_leaves=8,
)


def outcome(encode, *arguments):
    """Meaning of bytes of JSON, or the kind of the error."""
    try:
        body = encode(*arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return repr(json.loads(body))


def in_python(records) -> str:
    def encode_datetime(value: object) -> str:
        if isinstance(value, datetime):
            return value.isoformat()
        message = f"a {type(value).__name__} cannot be written as telemetry"
        raise TypeError(message)

    return json.dumps(list(records), allow_nan=False, default=encode_datetime)


@given(st.lists(plain, max_size=3))
def test_records_as_json_are_what_python_makes_of_them(records) -> None:
    assert outcome(encode_records, iter(records)) == outcome(in_python, records)


@given(st.lists(plain, max_size=3))
def test_a_client_refuses_datetimes_among_its_fields(records) -> None:
    body = encode_json(records, datetimes=False)
    expected = outcome(lambda: json.dumps(records, allow_nan=False))
    if body is not None:
        assert outcome(lambda: body) == expected
    else:
        assert "datetime" in repr(records) or in_python_only(records)


def in_python_only(value: object) -> bool:
    """True where the engine leaves a value to Python."""
    if type(value) is dict:
        return any(type(key) is not str or in_python_only(each) for key, each in value.items())
    if type(value) in (list, tuple):
        return any(map(in_python_only, value))
    if type(value) is int:
        return not -(2**63) <= value < 2**63
    if type(value) is float:
        return value in (float("inf"), float("-inf")) or value != value  # noqa: PLR0124  NaN
    if type(value) is str:
        return any("\ud800" <= character <= "\udfff" for character in value)
    return value is not None and type(value) is not bool


def test_plain_records_are_left_to_nobody() -> None:
    record = {
        "measurement": "link",
        "time": datetime(2026, 1, 31, tzinfo=UTC),
        "tags": {"entity_id": "é"},
        "fields": {"a": 1.5, "b": -0.0, "c": 7, "d": True, "e": "x\n", "f": None},
    }
    assert (
        encode_json([record, {}, [], ()], datetimes=True)
        == (
            '[{"measurement":"link","time":"2026-01-31T00:00:00+00:00","tags":{"entity_id":"é"},'
            '"fields":{"a":1.5,"b":-0.0,"c":7,"d":true,"e":"x\\n","f":null}},{},[],[]]'
        ).encode()
    )


def test_a_circle_is_found() -> None:
    record: dict = {"measurement": "link"}
    record["fields"] = record
    with pytest.raises(ValueError, match="Circular"):
        encode_records([record])


values = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=200),
    st.sampled_from([Level.LOW, Mode.TX]),
)
records = st.fixed_dictionaries(
    {
        "measurement": st.text(max_size=4),
        "time": st.one_of(st.integers(-(2**62), 2**62), datetimes),
    },
    optional={
        "tags": st.dictionaries(st.text(max_size=3), st.text(max_size=200), max_size=4),
        "fields": st.dictionaries(st.text(max_size=3), values, max_size=5),
    },
)


def by_classes(record: dict) -> WriteRequest:
    """The record by the generated classes."""
    request = WriteRequest()
    message = request.records.add()
    message.measurement = record["measurement"]
    message.time.seconds, message.time.nanos = divmod(in_python_ns(record["time"]), SECOND_NS)
    message.time.SetInParent()
    message.tags.update(record.get("tags", {}))
    for name, value in record.get("fields", {}).items():
        if isinstance(value, bool):
            message.fields[name].bool_value = value
        elif isinstance(value, int) and abs(value) < 2**63:
            message.fields[name].int_value = value
        elif isinstance(value, int | float):
            message.fields[name].number_value = value
        else:
            message.fields[name].string_value = value
    return request


def in_python_ns(time: object) -> int:
    """Nanoseconds of a time, in plain Python."""
    if isinstance(time, str):
        finer = re.search(r"[.,]\d{6}(\d{1,3})", time)
        digits = finer[1] if finer else ""
        return in_python_ns(datetime.fromisoformat(time)) + int(digits.ljust(3, "0"))
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1) * 1000
    return int(time)


@given(st.lists(records, max_size=3))
def test_records_as_protobuf_are_those_of_the_generated_classes(sent) -> None:
    encoded = encode_protobuf(iter(sent))
    assert len(encoded) == len(sent)
    for record, ours in zip(sent, encoded, strict=True):
        theirs = by_classes(record)
        read = WriteRequest.FromString(ours)
        assert read.SerializeToString(deterministic=True) == theirs.SerializeToString(
            deterministic=True
        )
        assert len(ours) == theirs.ByteSize()


def test_records_need_not_be_dicts() -> None:
    record = {
        "measurement": "link",
        "time": 5,
        "tags": {"entity_id": "a"},
        "fields": {"a": 1.0, "b": Level.LOW},
    }
    proxy = MappingProxyType(
        record
        | {
            "tags": OrderedDict(record["tags"]),
            "fields": MappingProxyType(record["fields"]),
        }
    )
    assert encode_protobuf([proxy]) == encode_protobuf([record])
    assert encode_protobuf([MappingProxyType({"measurement": "m", "time": 0})])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"measurement": 5}, TypeError),
        ({"measurement": "\ud800"}, ValueError),
        ({"time": None}, TypeError),
        ({"time": True}, TypeError),
        ({"time": 1.5}, TypeError),
        ({"time": "yesterday"}, ValueError),
        ({"time": 10**30}, ValueError),
        ({"tags": 5}, TypeError),
        ({"tags": {"a": 5}}, TypeError),
        ({"tags": {5: "a"}}, TypeError),
        ({"tags": OrderedDict({5: "a"})}, TypeError),
        ({"fields": [1]}, TypeError),
        ({"fields": {"a": None}}, TypeError),
        ({"fields": {"a": datetime(2026, 1, 1, tzinfo=UTC)}}, TypeError),
        ({"fields": {"a": 10**400}}, OverflowError),
    ],
)
def test_what_is_no_record(change, error) -> None:
    with pytest.raises(error):
        encode_protobuf([{"measurement": "link", "time": 0} | change])


@pytest.mark.parametrize("missing", ["measurement", "time"])
@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_what_is_missing_is_named(missing, kind) -> None:
    record = kind({"measurement": "link", "time": 0})
    del record[missing]
    with pytest.raises(KeyError, match=missing):
        encode_protobuf([record])


@given(
    time=st.datetimes(timezones=zones),
    separator=st.sampled_from(["T", " "]),
    digits=st.text("0123456789", max_size=9),
)
def test_times_are_those_of_python(time, separator, digits) -> None:
    assert time_ns(time) == in_python_ns(time)
    text = time.isoformat(separator, timespec="seconds")
    fraction = f".{digits}" if digits else ""
    text = text[:19] + fraction + text[19:]
    assert time_ns(text) == in_python_ns(text)


@pytest.mark.parametrize("time", ["20260131T120000", "2026-W05-6", "2026-01-31T12", "2026-01-31"])
def test_every_form_that_python_reads_is_a_time(time) -> None:
    assert time_ns(time) == in_python_ns(time)
