"""Asynchronous mode (F1): acknowledged batches of many tenants become durable."""

from __future__ import annotations

import pytest

from fleetcast.composition.flushing import Flusher
from fleetcast.config.sections import Ingest
from fleetcast.engine import Engine, encode_records
from fleetcast.metrics import Counters, Totals, sample
from tests.maintenance.stopped_writer import stopped_writer
from tests.waiting import until

MASTER_KEY = bytes(32)
BODY = encode_records([{"measurement": "link", "time": "2026-01-01", "fields": {"a": 1.0}}])


@pytest.fixture
def engine(tmp_path):
    made = Engine(tmp_path / "planes", MASTER_KEY)
    yield made
    made.close()


def test_a_store_that_hangs_delays_no_other(engine, tmp_path):
    """They were flushed one after the other."""
    names = [f"a{number}" for number in range(5)]
    for name in names:
        engine.create_plane(name)
        engine.plane(name, "acme").write_json(BODY, buffer_bytes_max=1 << 20)
    counters = Counters.alone()
    flusher = Flusher(engine, lambda: Ingest(mode="async", flush_interval_ms=1), counters)
    with stopped_writer(tmp_path / "planes" / names[0], MASTER_KEY), flusher.running():
        until(lambda: set(engine.open_planes.waiting()) == {names[0]})
        gauge = sample("fleetcast_ingest_buffer_bytes")
        ((_, waiting),) = engine.open_planes.waiting().values()
        until(lambda: Totals(counters.shared).of(gauge) == waiting)
        # Batches that come meanwhile are flushed as well.
        engine.plane(names[1], "acme").write_json(BODY, buffer_bytes_max=1 << 20)
        until(lambda: set(engine.open_planes.waiting()) == {names[0]})
    engine.close()
    rows = {name: engine.plane(name, "acme").stats().rows for name in names[1:]}
    assert rows == {name: 2 if name == names[1] else 1 for name in names[1:]}
