"""Refusals of `GatewayWriter.write`, so that no record costs others their batch."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from fleetcast.client.checks import check_record, encode_checked
from fleetcast.client.records import encode_record
from tests.grpc.station import Station

GOOD = {"measurement": "link", "time": 0, "tags": {"entity_id": "a"}, "fields": {"n": 1}}
TAGS_64 = {"entity_id": "a"} | {f"t{n}": "" for n in range(63)}
STAMPED = {"tenant": "x", "tenant_id": "x", "tenant_key": "x"}

ALLOWED = {
    "64 tags": {"tags": TAGS_64},
    "those that the service stamps do not count": {"tags": TAGS_64 | STAMPED},
    "an empty tag value": {"tags": {"entity_id": "a", "site": ""}},
    "any text": {"measurement": " ", "tags": {"entity_id": "\0é😀"}, "fields": {"\n": ""}},
    "the largest numbers": {"fields": {"a": 1.7e308, "b": 10**308, "c": -(2**63), "d": 2**64}},
    "no fields": {"fields": {}},
    "before 2000": {"time": datetime(1, 1, 1, tzinfo=UTC)},
    "to come": {"time": "9999-12-31T23:59:59.999999999Z"},
}
# The name in the message, and whether protobuf can carry it to the service.
REFUSED = {
    "no measurement": ({"measurement": None}, "measurement", False),
    "an empty measurement": ({"measurement": ""}, "measurement", True),
    "half a surrogate pair": ({"measurement": "\ud800"}, "measurement", False),
    "no time": ({"time": None}, "time", False),
    "a time that is a float": ({"time": 1.5}, "time", False),
    "a time that is a bool": ({"time": True}, "time", False),
    "a time that is no text of one": ({"time": "yesterday"}, "time", False),
    "a time after year 9999": ({"time": 253_402_300_800 * 10**9}, "time", True),
    "a time before year 1": ({"time": -62_135_596_801 * 10**9}, "time", True),
    "65 tags": ({"tags": TAGS_64 | {"one": "more"}}, "tags", True),
    "tags that are none": ({"tags": ["entity_id"]}, "tags", False),
    "an empty key": ({"tags": {"entity_id": "a", "": "x"}}, "tags", True),
    "a tag that is a number": ({"tags": {"entity_id": "a", "site": 7}}, "tags.site", False),
    "no entity": ({"tags": {"site": "a"}}, "tags.entity_id", True),
    "an empty entity": ({"tags": {"entity_id": ""}}, "tags.entity_id", True),
    "NaN": ({"fields": {"n": 1, "snr_db": float("nan")}}, "fields.snr_db", True),
    "infinity": ({"fields": {"n": float("-inf")}}, "fields.n", True),
    "an integer beyond all doubles": ({"fields": {"n": 10**400}}, "fields.n", False),
    "a value that is none": ({"fields": {"n": None}}, "fields.n", False),
    "a list": ({"fields": {"n": [1]}}, "fields.n", False),
    "an empty name": ({"fields": {"": 1}}, "fields", True),
    "a name that is no text": ({"fields": {7: 1}}, "fields", False),
    "fields that are none": ({"fields": 7}, "fields", False),
    "4,097 fields": ({"fields": {f"f{n}": n for n in range(4097)}}, "fields", True),
}


LIMITS = {"tags_max": 64, "fields_max": 4096}


def check(record):
    """Both checks, the engine's and the one that names the part at fault, say the same."""
    try:
        encoded = encode_checked(record, **LIMITS)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            check_record(record, **LIMITS)
        raise
    assert encoded == encode_record(record)
    return check_record(record, **LIMITS)


@pytest.mark.parametrize("change", ALLOWED.values(), ids=ALLOWED)
def test_what_the_service_takes_is_taken(change):
    assert check(GOOD | change) is None


def test_n1_4096_fields_are_taken():
    assert check(GOOD | {"fields": {f"f{n}": n for n in range(4096)}}) is None


@pytest.mark.parametrize(("change", "name", "_"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_named(change, name, _):
    with pytest.raises(ValueError, match=rf"^{name}: "):
        assert check(GOOD | change) is None


@pytest.mark.parametrize("missing", ["measurement", "time"])
def test_what_is_missing_is_named(missing):
    with pytest.raises(ValueError, match=f"^{missing}: is missing"):
        check({name: value for name, value in GOOD.items() if name != missing})


def test_a_record_is_a_mapping():
    with pytest.raises(ValueError, match=r"^record: "):
        check([GOOD])


def test_a_long_name_is_cut():
    with pytest.raises(ValueError, match=r"^fields\.n{73}…: ") as raised:
        check(GOOD | {"fields": {"n" * 1_000_000: None}})
    assert len(str(raised.value)) < 200


def test_the_service_says_the_same(own):
    """Agreement on all that protobuf can carry: no record is refused that could be stored."""
    service = own()
    station = Station(service.ready)
    taken = [station.write(encode_record(GOOD | change), own.key) for change in ALLOWED.values()]
    assert {outcome.status for outcome in taken} == {"OK"}
    for change, name, is_carried in REFUSED.values():
        if is_carried:
            refusal = station.write(encode_record(GOOD | change), own.key).refusal
            field = name.removeprefix("tags.") if name == "tags.entity_id" else name.split(".")[0]
            assert refusal == ("INVALID_ARGUMENT", f"invalid_input:{field}")
    station.close()
