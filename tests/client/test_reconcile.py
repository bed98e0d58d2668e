"""F7, L27: a batch whose acknowledgement never came is looked up before it is sent again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fleetcast.client import Client, GatewayWriter, Options
from fleetcast.client.times import SECOND_NS, time_text

START_NS = time.time_ns() - 1800 * SECOND_NS
ALL_TYPES = {"number": 0.1, "whole": 3, "large": 2**60 + 1, "up": True, "word": "1.0"}


def record(number, fields=None, **changed):
    return {
        "measurement": "link",
        "time": START_NS + number * 1_000_003,
        "tags": {"entity_id": "l1"},
        "fields": fields or {"n": number},
        **changed,
    }


def rows_of(client):
    start = START_NS // SECOND_NS * SECOND_NS
    page = client.series(
        ["l1"], start=time_text(start), end=time_text(start + 600 * SECOND_NS), measurement="link"
    )
    return page["series"][0]["channels"].get("n", [])


def test_what_was_stored_is_known_from_what_was_not(own):
    with Client(own().ready["http"], own.key) as client:
        for batch in (
            [record(n) for n in range(100)],
            [record(200, ALL_TYPES)],
            [record(300, measurement="pool_interval")],
            [record(400, {"n": 1}), record(400, {"n": 2})],  # one instant: the last counts
            [record(500), record(501, time=1), {**record(502), "fields": {}}, record(503, tags={})],
        ):
            assert not client.was_stored(batch)
            client.write(batch)
            assert client.was_stored(batch)
        for other in (
            record(1, {"n": 2}),
            record(1, {"n": 1, "more": 1}),
            record(1, measurement="satellite"),
            record(1, tags={"entity_id": "l2"}),
            record(1, time=record(1)["time"] + 1),
            record(200, {**ALL_TYPES, "word": "1"}),
        ):
            assert not client.was_stored([other])
        # Another writer changed the first record's instant since.
        client.write([record(0, {"n": -1})])
        assert client.was_stored([record(n) for n in range(100)])


@pytest.mark.parametrize(
    "lost",
    [
        {"tags": {}},
        {"fields": {}},
        {"time": "1999-12-31T23:59:59Z"},
        {"time": time.time_ns() + 3600 * SECOND_NS},
    ],
)
def test_what_cannot_be_looked_up_is_said(lost):
    with Client("http://127.0.0.1:1", "k") as client, pytest.raises(ValueError, match="looked up"):
        client.was_stored([{**record(1), **lost}])


def test_nothing_is_lost_or_there_twice_after_a_kill(own):
    """Batches go out without pause; the server is killed between them, or within one."""
    first = own()
    refused = []
    options = Options(records_max=5, resend_uncertain=False)
    authority = Path(first.ready["grpc_ca"]).read_bytes()
    address = first.ready["grpc"]
    with GatewayWriter(
        address, own.key, authority=authority, on_refused=refused.append, options=options
    ) as writer:
        for number in range(2000):
            writer.write(record(number))
            if number == 1000:
                first.kill()
        second = own("--grpc", address)
        assert writer.flush(60)
    assert all(batch.uncertain for batch in refused)
    with Client(second.ready["http"], own.key) as client:
        for batch in refused:
            if not client.was_stored(batch.records):
                client.write(batch.records)
        numbers = rows_of(client)
    assert numbers == [float(number) for number in range(2000)]
