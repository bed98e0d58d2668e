"""L1 to L13, L25, L28, L29, E8: what is written, and what is refused in which words."""

from __future__ import annotations

import struct

import grpc
import pytest

from fleetcast.protobuf import delimited, integer
from tests.conformance.api import HOUR_S, at

from .messages import SECOND_NS, encode, record
from .station import INGEST

NOW_NS = HOUR_S * SECOND_NS
BARE = "TelemetryIngest"


def refusal(station, tenant, *records):
    return station.write(encode(*records), tenant.key).refusal


@pytest.mark.parametrize("name", [INGEST, BARE])  # L1
def test_what_is_written_is_read_over_http(station, tenant, name):  # L2, L29
    fields = {"snr_db": 1.5, "up": True, "mode": "tx", "count": 7}
    body = encode(record(NOW_NS + SECOND_NS // 2, "l1", tags={"site": "x"}, fields=fields))
    outcome = station.write(body, tenant.key, name)
    assert outcome.status == "OK"
    assert (outcome.response.accepted_count, outcome.response.rejected_count) == (1, 0)
    assert outcome.response.write_id[14] == "7"  # F2
    (entity,) = tenant.entities()
    assert entity == {
        "measurement": "link",
        "entity_id": "l1",
        "observed_at": at(0.5),
        "tags": {"entity_id": "l1", "site": "x"},
        "fields": fields | {"count": 7.0},
    }


def test_a_call_without_records(station, tenant):  # L28
    response = station.write(b"", tenant.key).response
    assert (response.accepted_count, response.rejected_count) == (0, 0)


def test_records_that_are_rejected_one_by_one(station, tenant):  # L12, D8, C17
    old = record(946_684_800 * SECOND_NS - 1)
    body = encode(record(None), old, record(NOW_NS, fields={}), record(NOW_NS))
    response = station.write(body, tenant.key).response
    assert (response.accepted_count, response.rejected_count) == (1, 3)
    assert len(tenant.rows()) == 1


CONTENT = {
    "L11": ({"entity": None}, "entity_id"),
    "C23": ({"entity": ""}, "entity_id"),
    "C20": ({"tags": {str(n): "x" for n in range(64)}}, "tags"),
    "C22": ({"tags": {"": "x"}}, "tags"),
    "L8 NaN": ({"fields": {"a": float("nan")}}, "fields"),
    "L8 infinite": ({"fields": {"a": float("-inf")}}, "fields"),
    "L8 unset": ({"fields": {"a": None}}, "fields"),
    "L8 nameless": ({"fields": {"": 1.0}}, "fields"),
    "L9": ({"measurement": ""}, "measurement"),
}


@pytest.mark.parametrize("clause", CONTENT)
def test_content_that_refuses_the_call(station, tenant, clause):
    changes, field = CONTENT[clause]
    expected = ("INVALID_ARGUMENT", f"invalid_input:{field}")
    assert refusal(station, tenant, record(NOW_NS), record(NOW_NS, **changes)) == expected
    assert refusal(station, tenant, record(0, **changes)) == expected  # L11
    assert tenant.entities() == []


@pytest.mark.parametrize("time", [(0, -1), (0, SECOND_NS), (253_402_300_800, 0)])
def test_times_that_are_none(station, tenant, time):  # L13
    bad = record(NOW_NS)
    bad.time.seconds, bad.time.nanos = time
    assert refusal(station, tenant, bad) == ("INVALID_ARGUMENT", "invalid_input:time")


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\x05", b"\x0b\x0c", delimited(1, b"\x0a\x01\xff")])
def test_bytes_that_are_no_message(station, tenant, body):  # L7
    outcome = station.write(body, tenant.key)
    assert outcome.refusal == ("INVALID_ARGUMENT", "invalid_input:payload")
    assert outcome.retry_seconds is None  # L6


def test_the_first_faulty_record_is_named(station, tenant):  # L10
    everything = {"entity": None, "tags": {"": "x"}, "fields": {"a": None}, "measurement": ""}
    for field in ("entity_id", "tags", "fields", "measurement"):
        records = record(NOW_NS), record(NOW_NS, **everything), record(NOW_NS, None)
        assert refusal(station, tenant, *records) == ("INVALID_ARGUMENT", f"invalid_input:{field}")
        del everything[{"entity_id": "entity"}.get(field, field)]


def test_too_many_records(station, tenant):  # L3, L4, L6
    one = encode(record(NOW_NS))
    outcome = station.write(one * 10_000, tenant.key)
    assert outcome.response.accepted_count == 10_000
    faulty = encode(record(NOW_NS, None))
    outcome = station.write(faulty + one * 10_000, tenant.key)
    assert outcome.refusal == ("RESOURCE_EXHAUSTED", "batch_too_large")
    assert outcome.retry_seconds is None
    outcome = station.write(one * 10_001 + b"\x00", tenant.key)
    assert outcome.refusal == ("INVALID_ARGUMENT", "invalid_input:payload")


def test_a_field_of_another_type(station, tenant):  # E1, E4, E8
    assert station.write(encode(record(NOW_NS)), tenant.key).status == "OK"
    other = record(NOW_NS, "x", fields={"new": 1.0, "snr_db": "strong"})
    assert refusal(station, tenant, record(NOW_NS, "x"), other) == (
        "INTERNAL",
        "field_type_conflict:snr_db",
    )
    assert [entity["entity_id"] for entity in tenant.entities()] == ["e"]
    http = tenant.post([{**HTTP_RECORD, "fields": {"snr_db": True}}])
    assert http.json == {"error": "field_type_conflict", "field": "snr_db"}


HTTP_RECORD = {"measurement": "link", "time": at(0), "tags": {"entity_id": "e"}}


def test_a_conflicting_field_with_a_name_of_any_bytes(station, tenant):
    for name in ("é\n%", "x" * 100_000):
        assert station.write(encode(record(NOW_NS, fields={name: 1.0})), tenant.key).status == "OK"
        outcome = station.write(encode(record(NOW_NS, fields={name: "x"})), tenant.key)
        assert outcome.refusal == ("INTERNAL", f"field_type_conflict:{name[:1000]}")


def test_the_server_stamps_the_tenant(station, tenant):  # C15
    assert station.write(encode(record(NOW_NS, tags={"tenant": "x"})), tenant.key).status == "OK"
    (entity,) = tenant.entities()
    assert entity["tags"]["tenant"] == tenant.name


def test_times_in_the_future_become_the_ingest_time(station, tenant):  # D10
    assert station.write(encode(record(NOW_NS * 2)), tenant.key).status == "OK"
    answer = tenant.get("/topology", freshness_seconds=60)
    assert len(answer.json["entities"]) == 1


def test_messages_above_the_cap(station, tenant):  # L5
    outcome = station.write(bytes(16_777_217), tenant.key)
    assert outcome.status == "RESOURCE_EXHAUSTED"
    padding = 16_777_216 - 6
    assert station.write(delimited(15, bytes(padding)), tenant.key).status == "OK"


def test_compressed_messages(station, tenant):  # L25
    body = encode(record(NOW_NS)) + delimited(15, bytes(1_000_000))
    gzip = grpc.Compression.Gzip
    assert station.write(body, tenant.key, compression=gzip).response.accepted_count == 1
    outcome = station.write(delimited(15, bytes(64_000_000)), tenant.key, compression=gzip)
    assert outcome.status == "RESOURCE_EXHAUSTED"
    assert station.write(body, tenant.key).status == "OK"


def test_no_message_at_all(station, tenant):
    call = station.channel.stream_unary(f"/{INGEST}/Write")
    with pytest.raises(grpc.RpcError) as raised:
        call(iter([]), metadata=(("x-api-key", tenant.key),), timeout=60)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.details() == "invalid_input:payload"


def test_fields_in_any_order_repeated_and_unknown(station, tenant):
    value = delimited(4, delimited(2, b"\x09" + struct.pack("<d", 2.5)) + delimited(1, "snr_db"))
    parts = [
        value,
        delimited(9, b"unknown"),
        delimited(3, delimited(2, "l1") + delimited(1, "entity_id")),
        delimited(1, b"weather"),
        delimited(2, integer(2, 5)),
        delimited(2, integer(1, HOUR_S)),
        delimited(1, b"link"),
    ]
    assert station.write(delimited(1, b"".join(parts)), tenant.key).response.accepted_count == 1
    (entity,) = tenant.entities()
    assert (entity["measurement"], entity["fields"]) == ("link", {"snr_db": 2.5})
    assert entity["observed_at"].endswith(":00.000000005Z")
