"""`Client.write` takes records of any number, and names the records that were not stored."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fleetcast.client import ApiError, Client, GatewayWriter
from fleetcast.client.batches import bodies
from tests.waiting import until

# Far from an hour ago: a read of an hour needs an interval.
START = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)


def record(number, **changed):
    tags = {"entity_id": f"l{number % 7}"}
    time = START + timedelta(milliseconds=number)
    fields = {"n": float(number)}
    return {"measurement": "link", "time": time, "tags": tags, "fields": fields} | changed


def test_batches_have_at_most_a_thousand_records_and_a_mebibyte():
    plain = bodies([record(number) for number in range(2_500)])
    assert [body.first for body in plain] == [0, 1_000, 2_000]
    texts = [record(number, fields={"note": "x" * 10_000}) for number in range(1_000)]
    long = bodies(texts)
    assert max(len(body.content) for body in long) <= 1_048_576
    assert [body.first for body in long] == [at * 1_000 // 16 for at in range(16)]


def test_a_datetime_among_the_fields_is_refused_by_name():
    with pytest.raises(TypeError) as raised:
        bodies([record(0), record(1, fields={"n": START})])
    assert raised.value.__notes__ == ["record 1: fields.n"]


def test_many_records_are_written_and_the_rejected_are_named(own):
    service = own()
    records = [record(number) for number in range(2_500)]
    records[7] = record(7, fields={})
    records[2_100] = record(2_100, time=datetime(1999, 1, 1, tzinfo=UTC))
    with Client(service.ready["http"], own.key) as client:
        assert repr(client) == f"Client({service.ready['http']!r})"
        written = client.write(iter(records))
        assert (written["accepted_count"], written["rejected_indices"]) == (2_498, [7, 2_100])
        assert written["rejected_records"] == [records[7], records[2_100]]
        assert client.write([])["accepted_count"] == 0

        records[1_003] = record(1_003, fields={"n": [1]})
        with pytest.raises(ApiError) as refused:
            client.write(records)
        named, stored = refused.value.__notes__
        assert named.startswith("record 1003, link of l2: fields.n: ")
        assert stored == "the batches of the first 1000 records are stored"

        with pytest.raises(ValueError, match=r"JSON|nan") as raised:
            client.write([*records, record(2_500, fields={"n": float("nan")})])
        assert raised.value.__notes__ == ["record 2500: fields.n"]
        with pytest.raises(KeyError) as raised:
            client.write([record(0), {"measurement": "link"}])
        assert raised.value.__notes__ == ["record 1: no time"]


def test_times_of_reads_may_have_any_form(own):
    service = own()
    with Client(service.ready["http"], own.key) as client:
        client.write([record(0), record(1)])
        for start in (START, START.replace(tzinfo=None), int(START.timestamp()) * 10**9):
            rows = client.series_frame(["l0", "l1"], start=start, measurement="link")
            assert rows["n"].to_list() == [0.0, 1.0]
        after_ns = int(START.timestamp()) * 10**9 + 1
        newest = client.topology("link", as_of=after_ns)["entities"]
        assert [entity["entity_id"] for entity in newest] == ["l0"]


def test_a_wrong_address_or_key_is_told_in_words(own, caplog):
    service = own()
    plain = service.ready["http"].replace("http://", "https://")
    secure = f"https://{service.ready['grpc']}"
    with Client(plain, own.key) as client, pytest.raises(ConnectionError, match="try http://"):
        client.account()
    with Client(secure, own.key) as client, pytest.raises(ConnectionError, match="not trusted"):
        client.account()

    refused = []
    authority = Path(service.ready["grpc_ca"])
    wrong = own.key[:-1] + ("a" if own.key[-1] != "a" else "b")
    with GatewayWriter(
        service.ready["grpc"], wrong, authority=authority, on_refused=refused.append
    ) as writer:
        writer.write(record(0))
        assert writer.flush(60)
    assert "the service does not know this key" in repr(refused[0])

    with caplog.at_level(logging.WARNING, "fleetcast.client"):
        writer = GatewayWriter(service.ready["grpc"], own.key, on_refused=refused.append)
        writer.write(record(0))
        until(lambda: "not trusted: give its authority" in caplog.text)
        assert not writer.flush(0)
        writer.close(0)
