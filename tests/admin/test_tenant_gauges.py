"""Gauges of tenants in a scrape: as fresh as the stores, and held up by none of them."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from fleetcast.admin.tenant_gauges import TenantGauges
from fleetcast.engine import Engine, Tenant, encode_records, peek
from fleetcast.engine.glances import Glance, folder_state
from tests.clock import Clock
from tests.maintenance.stopped_writer import stopped_writer
from tests.waiting import PATIENCE_SECONDS, until

MASTER_KEY = bytes(32)
BODY = encode_records([{"measurement": "link", "time": "2026-01-01", "fields": {"a": 1.0}}])
NAMES = ("alpha", "beta", "gamma")


@pytest.fixture
def engine(tmp_path):
    made = Engine(tmp_path / "planes", MASTER_KEY)
    for name in NAMES:
        made.create_plane(name)
    yield made
    made.close()


@pytest.fixture
def patient(monkeypatch):
    """A scrape waits for as long as the reading of the stores takes."""
    monkeypatch.setattr("fleetcast.admin.tenant_gauges._PATIENCE_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def tenants(engine):
    return [
        Tenant(
            name=name,
            account_id=str(engine.folder(name)),
            plan="pro",
            live_ingest=True,
            retention_seconds=None,
            disabled=False,
            created_at=0,
        )
        for name in NAMES
    ]


def glance(folder, counts=peek):
    return Glance(partial(folder_state, folder), partial(counts, folder))


def rows(gauges):
    return gauges.lines()["fleetcast_tenant_rows"]


def line(tenant, count):
    return f'fleetcast_tenant_rows{{tenant="{tenant}"}} {count}'


@pytest.mark.usefixtures("patient")
def test_they_follow_the_stores(engine, tenants):
    gauges = TenantGauges(lambda: tenants, glance)
    assert rows(gauges) == [line(name, 0) for name in NAMES]
    engine.plane("beta", "beta").write_json(BODY)
    assert rows(gauges) == [line("alpha", 0), line("beta", 1), line("gamma", 0)]
    tenants.pop(0)
    assert rows(gauges) == [line("beta", 1), line("gamma", 0)]


@pytest.mark.usefixtures("patient")
def test_a_process_that_was_stopped_while_it_wrote_holds_up_no_scrape(engine, tenants):
    """Every scrape waited for the writer's lock of each store."""
    engine.plane("beta", "beta").write_json(BODY)
    with stopped_writer(Path(tenants[0].account_id), MASTER_KEY):
        found = TenantGauges(lambda: tenants, glance).lines()
    assert found["fleetcast_tenant_up"] == [f'fleetcast_tenant_up{{tenant="{n}"}} 1' for n in NAMES]
    assert found["fleetcast_tenant_rows"][1:] == [line("beta", 1), line("gamma", 0)]


def test_a_disk_that_hangs_holds_up_no_scrape(tenants):
    answers, asked = threading.Event(), []

    def slow(folder):
        asked.append(Path(folder).name)
        if Path(folder).name == "gamma":
            answers.wait()
        return peek(folder)

    gauges = TenantGauges(lambda: tenants, partial(glance, counts=slow))
    try:
        until(lambda: asked == list(NAMES))
        assert rows(gauges) == [line("alpha", 0), line("beta", 0)]
        assert rows(gauges) == [line("alpha", 0), line("beta", 0)]
        assert asked == list(NAMES)  # nobody else is made to wait for it
    finally:
        answers.set()


@pytest.mark.usefixtures("patient")
def test_stores_that_have_not_changed_are_not_read_again(tenants, engine):
    asked = []

    def counting(folder):
        asked.append(Path(folder).name)
        return peek(folder)

    clock = Clock()
    gauges = TenantGauges(lambda: tenants, partial(glance, counts=counting), clock)
    rows(gauges)
    clock.now += 10  # a compaction may remove files until then
    rows(gauges)
    asked.clear()
    rows(gauges)
    assert asked == []
    engine.plane("beta", "beta").write_json(BODY)
    rows(gauges)
    clock.now += 10
    rows(gauges)
    rows(gauges)
    assert asked == ["beta", "beta"]
