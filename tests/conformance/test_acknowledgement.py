"""F: what a write is told, and what two writes of the same come to."""

from __future__ import annotations

import json
import time
import uuid

from tests.waiting import until

from .api import at, raw, record


def test_f2_the_write_id_is_a_uuid7_of_its_own(tenant):
    before = time.time_ns() // 1_000_000
    answers = [
        tenant.post(body) for body in ([], [record(at(1))], [{**record(at(1)), "fields": {}}])
    ]
    ids = [uuid.UUID(answer.json["write_id"]) for answer in answers]
    assert len(set(ids)) == 3
    for one in ids:
        assert (one.version, one.variant) == (7, uuid.RFC_4122)
        assert before <= one.int >> 80 <= time.time_ns() // 1_000_000
    assert all(
        answer.json["write_id"] == str(one) for answer, one in zip(answers, ids, strict=True)
    )


def test_f3_the_acknowledgement_has_four_fields(tenant):
    answer = tenant.post([record(at(1))])
    assert answer.status == 202
    assert set(answer.json) == {"write_id", "accepted_count", "rejected_count", "rejected_indices"}
    assert answer.json["accepted_count"] == 1
    assert answer.json["rejected_count"] == 0
    assert answer.json["rejected_indices"] is None


def test_f3_rejected_indices_ascend_and_the_rest_is_written(tenant):  # stage 12
    batch = [record(at(number), number=number) for number in range(50)]
    rejected = [0, 7, 8, 31, 49]
    for index in rejected:
        batch[index] = (
            {**batch[index], "fields": {}} if index % 2 else record("1999-12-31", entity="old")
        )
    answer = tenant.post(batch)
    assert answer.json["rejected_indices"] == rejected
    assert (answer.json["accepted_count"], answer.json["rejected_count"]) == (45, 5)
    numbers = [fields["number"] for _, fields in tenant.rows()]
    assert numbers == [number for number in range(50) if number not in rejected]


def test_f4_a_replayed_batch_is_written_twice(tenant):
    batch = [record(at(1), a=1), record(at(2), a=2)]
    for _ in range(2):
        tenant.write(*batch)
    rows = [(at(1), {"a": 1.0}), (at(1), {"a": 1.0}), (at(2), {"a": 2.0}), (at(2), {"a": 2.0})]
    assert tenant.rows() == rows
    assert tenant.get("/account/state").json["usage"]["records_accepted_total"] == 4


def test_f4_disjoint_fields_of_one_instant_share_a_row(tenant):
    tenant.write(record(at(1), a=1), record(at(2), a=2))
    tenant.write(record(at(1), b=3), record(at(3), b=4))
    assert tenant.rows() == [
        (at(1), {"a": 1.0, "b": 3.0}),
        (at(2), {"a": 2.0, "b": None}),
        (at(3), {"a": None, "b": 4.0}),
    ]


def test_f4_a_field_that_repeats_opens_a_further_row_in_write_order(tenant):
    tenant.write(
        record(at(1), a=1),
        record(at(1), b=1),  # joins the first row
        record(at(1), a=2, c=2),  # repeats a: a second row
        record(at(1), b=3),  # joins the newest row only
        record(at(1), b=4),  # repeats b there: a third
        record(at(1), c=5),
    )
    assert tenant.rows() == [
        (at(1), {"a": 1.0, "b": 1.0, "c": None}),
        (at(1), {"a": 2.0, "b": 3.0, "c": 2.0}),
        (at(1), {"a": None, "b": 4.0, "c": 5.0}),
    ]


def test_f4_only_returned_channels_count(tenant):
    tenant.write(
        record(at(1), a=1, b=1), record(at(1), b=2), record(at(1), c=3), record(at(1), s="x")
    )
    assert tenant.rows(fields="a,c") == [(at(1), {"a": 1.0, "c": 3.0})]
    assert tenant.rows(fields="c") == [(at(1), {"c": 3.0})]


def test_f4_a_record_is_never_split(tenant):
    tenant.write(record(at(1), a=1), record(at(1), b=1), record(at(1), b=2, c=2))
    assert tenant.rows() == [
        (at(1), {"a": 1.0, "b": 1.0, "c": None}),
        (at(1), {"a": None, "b": 2.0, "c": 2.0}),
    ]


def test_f5_every_stored_value_is_a_sample(tenant):
    for _ in range(3):
        tenant.write(record(at(1), a=1.0))
    tenant.write(record(at(2), a=5.0))
    assert tenant.rows(interval="1m", agg="mean") == [(at(0), {"a": 2.0})]


def test_f6_one_row_of_all_records_at_the_newest_instant(tenant):
    first = {**record(at(5), a=1, b=1, s="x"), "tags": {"entity_id": "e", "site": "1", "x": "1"}}
    later = {**record(at(5), b=2, c=2), "tags": {"entity_id": "e", "site": "2"}}
    tenant.write(record(at(4), old=1), first)
    tenant.write(later)
    (entity,) = tenant.entities()
    assert entity["observed_at"] == at(5)
    assert entity["fields"] == {"a": 1.0, "b": 2.0, "c": 2.0, "s": "x"}
    assert entity["tags"] == {"entity_id": "e", "site": "2", "x": "1"}


def test_f8_a_client_that_leaves_after_sending_has_written(tenant):
    body = json.dumps([record(at(1))]).encode()
    text = f"POST /telemetry HTTP/1.1\r\nx-api-key: {tenant.key}\r\nContent-Length: {len(body)}"
    with raw(tenant.service) as client:
        client.send(f"{text}\r\n\r\n".encode() + body)
    assert until(tenant.entities), "the batch arrives"
