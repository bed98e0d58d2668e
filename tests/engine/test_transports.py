"""The same records through JSON and through protobuf are the same data and the same refusals."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.engine import Plane
from fleetcast.errors import Refused
from tests.grpc.messages import SECOND_NS, WriteRequest, encode, record

from .formats import assert_alike, outcome
from .strategies import BASE_NS, ENTITIES, batches, latest_queries, series_queries
from .test_properties import TENANT, to_body


def to_message(records: list[dict]) -> bytes:
    return encode(
        *(
            record(each["time_ns"], None, each["measurement"], each["tags"], each["fields"])
            for each in records
        )
    )


@given(
    written=st.lists(batches, max_size=5),
    mixed=st.lists(st.booleans(), min_size=5, max_size=5),
    latest=st.lists(latest_queries, min_size=1, max_size=3),
    series=st.lists(series_queries(), min_size=1, max_size=3),
    entity=st.sampled_from(ENTITIES),
)
def test_every_read_is_byte_for_byte_the_same(written, mixed, latest, series, entity) -> None:
    both = []
    for records, is_json in zip(written, mixed, strict=False):
        for each in records:
            each["tags"]["entity_id"] = each["tags"].get("entity_id") or entity  # gRPC needs one
        both.append((records, to_message(records), is_json))
    assert_alike("write_protobuf", both, latest, series)


FAULTY = {
    "fields": {"fields": {"": 1.0}},
    "measurement": {"measurement": ""},
    "tags": {"tags": {"entity_id": "a", "": "x"}},
}


@pytest.mark.parametrize("field", FAULTY)
def test_what_one_refuses_the_other_refuses(field) -> None:
    good = {
        "measurement": "link",
        "time_ns": BASE_NS,
        "tags": {"entity_id": "a"},
        "fields": {"a": 1},
    }
    records = [good, good | FAULTY[field]]
    plane = Plane.in_memory(TENANT)
    with pytest.raises(Refused):
        plane.write_json(to_body(records))
    with pytest.raises(Refused) as refused:
        plane.write_protobuf(to_message(records))
    assert refused.value.args == ("invalid_input", {"field": field})
    assert plane.stats().rows == plane.stats().series == 0


pieces = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"\x0a", b"\x12", b"\x1a", b"\x22", b"\x09", b"\x10", b"\x00", b"\x80"]),
    st.builds(
        encode,
        st.builds(
            record,
            st.integers(BASE_NS, BASE_NS + SECOND_NS),
            fields=st.dictionaries(
                st.sampled_from("abcdé"),
                st.one_of(st.floats(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=3)),
            ),
        ),
    ),
)


def has_groups(message: bytes) -> bool:
    """Start and end of groups in any place could only be told by decoding: none at all."""
    return any(byte & 7 in (3, 4) for byte in message)


@settings(max_examples=max(200, settings().max_examples))  # each of them is quick
@given(body=st.lists(pieces, max_size=4).map(b"".join), cut=st.integers(0, 200), data=st.data())
def test_bytes_are_a_message_where_the_reference_says_so(body, cut, data) -> None:
    """Differential against the generated classes, over damaged messages."""
    body = body[: len(body) - cut % 7] if cut > 150 else body
    if body and cut % 3 == 0:
        at = data.draw(st.integers(0, len(body) - 1))
        body = body[:at] + bytes([data.draw(st.integers(0, 255))]) + body[at + 1 :]
    try:
        request = WriteRequest.FromString(body)
    except DecodeError:
        request = None
    refusal = outcome(Plane.in_memory(TENANT).write_protobuf, body)
    malformed = refusal == ("invalid_input", {"field": "payload"})
    if has_groups(body):
        return
    assert malformed == (request is None), body
    if request is not None and isinstance(refusal[0], int):
        assert refusal[0] + len(refusal[1]) == len(request.records)
