"""Both clients against the real service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from fleetcast.client import ApiError, Client, GatewayWriter, Options
from tests.waiting import until

TAGS_66 = ["entity_id", *(f"t{n}" for n in range(65))]


@pytest.fixture(scope="module")
def start():
    """Half an hour before the first test; before all are collected may be long ago."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=30)


@pytest.fixture(scope="module")
def record(start):
    def record(number, entity="l1"):
        return {
            "measurement": "link",
            "time": start + timedelta(seconds=number),
            "tags": {"entity_id": entity},
            "fields": {"n": number, "up": True},
        }

    return record


def test_what_is_written_is_read_as_frames(own, start, record):
    service = own()
    with Client(service.ready["http"], own.key) as client:
        written = client.write(record(n, entity) for n in range(100) for entity in ("l1", "l2"))
        assert written["accepted_count"] == 200
        assert client.health()
        until(lambda: client.health("telemetry"))
        newest = client.topology_frame("link", freshness_seconds=3600)
        assert newest.columns == ["entity_id", "observed_at", "tags", "n", "up"]
        assert newest["n"].to_list() == [99.0, 99.0]
        assert newest["observed_at"].dtype == pl.Datetime("ns", "UTC")
        span = {"start": start, "end": start + timedelta(minutes=5), "measurement": "link"}
        rows = client.series_frame(["l1", "l2"], **span)
        assert rows.columns == ["entity_id", "time", "n"]
        assert rows.filter(entity_id="l2")["n"].to_list() == [float(n) for n in range(100)]
        windows = client.series_frame(["l1"], **span, fields=["n"], interval="1m", agg="max")
        assert windows["n"].max() == 99.0
        with pytest.raises(ApiError) as raised:
            client.series(["l1"], start=start, end=start, measurement="link")
        assert (raised.value.status, raised.value.code) == (422, "invalid_range")


def test_pages_are_followed(own, start, record):
    service = own("--set", "limits.point_budget=16")
    with Client(service.ready["http"], own.key) as client:
        client.write(record(n) for n in range(50))
        span = {"start": start, "end": start + timedelta(minutes=5), "measurement": "link"}
        rows = client.series_frame(["l1"], **span)
    assert rows["n"].to_list() == [float(n) for n in range(50)]


def test_a_writer_outlives_the_server(own, tmp_path, start, record):
    """The server is killed and comes back on the same port: everything is there, in order."""
    first = own()
    refused = []
    writer = GatewayWriter(
        first.ready["grpc"],
        own.key,
        authority=Path(first.ready["grpc_ca"]).read_bytes(),
        on_refused=refused.append,
        spool=tmp_path / "spool",
        options=Options(records_max=5, memory_bytes_max=1000),
    )
    for number in range(50):
        writer.write(record(number))
    assert writer.flush(60)
    first.kill()
    for number in range(50, 100):
        writer.write(record(number))
    assert list((tmp_path / "spool").iterdir())
    second = own("--grpc", first.ready["grpc"])
    assert writer.flush(60)
    assert writer.close() == 0
    assert refused == []
    with Client(second.ready["http"], own.key) as client:
        span = {"start": start, "end": start + timedelta(minutes=5), "measurement": "link"}
        rows = client.series_frame(["l1"], **span)
    # A call that the kill cut off may have been stored and sent again.
    assert rows["n"].unique(maintain_order=True).to_list() == [float(n) for n in range(100)]


def test_what_the_server_refuses_comes_back_and_nothing_else(own, start, record):
    """E8, C20: of 50 records in one batch two are at fault, by what only the service knows."""
    service = own("--set", "grpc.records_per_call_max=30")
    refused = []
    authority = Path(service.ready["grpc_ca"]).read_bytes()
    with GatewayWriter(
        service.ready["grpc"],
        own.key,
        authority=authority,
        on_refused=refused.append,
        options=Options(tags_max=1000),
    ) as writer:
        for number in range(50):
            changed = {7: {"fields": {"n": "text"}}, 33: {"tags": dict.fromkeys(TAGS_66, "l1")}}
            writer.write(record(number) | changed.get(number, {}))
        assert writer.flush(60)
        assert (writer.tally.accepted, writer.tally.refused) == (48, 2)
    assert [(batch.status, batch.details) for batch in refused] == [
        ("INTERNAL", "field_type_conflict:n"),
        ("INVALID_ARGUMENT", "invalid_input:tags"),
    ]
    assert [len(batch.records) for batch in refused] == [1, 1]
    assert refused[0].records[0]["fields"] == {"n": "text"}
    with Client(service.ready["http"], own.key) as client:
        rows = client.series_frame(["l1"], start=start, measurement="link")
    assert rows["n"].to_list() == [float(n) for n in range(50) if n not in {7, 33}]
