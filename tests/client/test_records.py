from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.client.records import decode_records, encode_record, split
from tests.grpc.messages import SECOND_NS, WriteRequest

values = st.one_of(
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=5),
)
records = st.fixed_dictionaries(
    {
        "measurement": st.text(max_size=4),
        "time": st.integers(-(2**62), 2**62),
        "tags": st.dictionaries(st.text(max_size=3), st.text(max_size=200), max_size=4),
        "fields": st.dictionaries(st.text(max_size=3), values, max_size=5),
    }
)


@given(st.lists(records, max_size=4))
def test_the_reference_reads_what_is_written(sent):
    request = b"".join(map(encode_record, sent))
    parsed = WriteRequest.FromString(request).records
    assert len(parsed) == len(sent)
    for message, record in zip(parsed, sent, strict=True):
        assert message.measurement == record["measurement"]
        assert message.time.seconds * SECOND_NS + message.time.nanos == record["time"]
        assert 0 <= message.time.nanos < SECOND_NS
        assert dict(message.tags) == record["tags"]
        read = {
            name: getattr(each, each.WhichOneof("value")) for name, each in message.fields.items()
        }
        assert read == record["fields"]
        assert {n: type(v) for n, v in read.items()} == {
            n: type(v) for n, v in record["fields"].items()
        }


@given(st.lists(records, max_size=4))
def test_what_is_written_is_read_back(sent):
    request = b"".join(map(encode_record, sent))
    assert decode_records(request) == sent
    assert split(request) == [encode_record(record) for record in sent]


@pytest.mark.parametrize(
    "time",
    [
        1_769_860_800 * SECOND_NS,
        datetime(2026, 1, 31, 12, tzinfo=UTC),
        datetime(2026, 1, 31, 12),  # noqa: DTZ001 - without a zone it is UTC
        datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2))),
        "2026-01-31T12:00:00Z",
        "2026-01-31T14:00:00+02:00",
    ],
)
def test_times(time):
    (read,) = decode_records(encode_record({"measurement": "link", "time": time}))
    assert read["time"] == 1_769_860_800 * SECOND_NS


@pytest.mark.parametrize(
    ("fraction", "nanos"),
    [(".123456789", 123_456_789), (",1234567", 123_456_700), (".1", 100_000_000), ("", 0)],
)
def test_texts_of_times_keep_their_nanoseconds(fraction, nanos):  # D6
    record = {"measurement": "link", "time": f"2026-01-31T12:00:00{fraction}Z"}
    (read,) = decode_records(encode_record(record))
    assert read["time"] == 1_769_860_800 * SECOND_NS + nanos


def test_integers_beyond_64_bits_are_doubles():
    record = {"measurement": "link", "time": 0, "fields": {"n": 1 << 70}}
    assert decode_records(encode_record(record))[0]["fields"] == {"n": float(1 << 70)}


@pytest.mark.parametrize("part", [{"time": None}, {"time": True}, {"fields": {"a": None}}])
def test_what_is_no_record(part):
    with pytest.raises(TypeError):
        encode_record({"measurement": "link", "time": 0, **part})
