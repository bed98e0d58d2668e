"""Services that predict, and tenants whose telemetry ends now."""

from __future__ import annotations

import math
import time

import pytest

from fleetcast.engine import Plane, format_time
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.forecast.serving.releases import Releases
from tests.conformance.api import accounts_of
from tests.service.service import running

from .serving import MovedClock

MINUTE_NS = 60_000_000_000
WINDOW_NS = 15 * MINUTE_NS
BATCH = 1000


def link_rows(entity, minutes, *, newest_minutes=0):
    """A sample of a link every ten seconds, the newest so long ago."""
    end_ns = time.time_ns() - newest_minutes * MINUTE_NS
    for step in range(minutes * 6):
        time_ns = end_ns - (step + 1) * 10_000_000_000
        yield {
            "measurement": "link",
            "time": format_time(time_ns),
            "tags": {"entity_id": entity, "site": "s1"},
            "fields": {"snr_db": 12 + math.sin(step / 40)},
        }


def pool_rows(entity, windows=700, missing=()):
    """A pool's bytes in each of the newest whole windows, with a daily rhythm."""
    now = time.time_ns() // WINDOW_NS
    for number in range(1, windows + 1):
        if number in missing:
            continue
        yield {
            "measurement": "pool_interval",
            "time": format_time((now - number) * WINDOW_NS),
            "tags": {"entity_id": entity, "region": "north", "tier": "gold"},
            "fields": {"offered_bytes": 1e9 * (2 + math.sin((now - number) / 96 * 2 * math.pi))},
        }


def write(tenant, rows):
    rows = list(rows)
    for first in range(0, len(rows), BATCH):
        tenant.write(*rows[first : first + BATCH])


def service_of(folder, *options):
    adapters = ("--set", "adapters.address=127.0.0.1:0")
    with running(folder / "data", *adapters, *options) as started:
        yield from accounts_of(started, folder / "data")


@pytest.fixture(scope="session")
def accounts(tmp_path_factory):
    """The service as it comes, with two workers; but what is fresh stays so while tests run."""
    fresh = ("--set", "forecast.fresh_seconds=3600")
    yield from service_of(tmp_path_factory.mktemp("predictions"), *fresh)


@pytest.fixture(scope="session")
def disabled(tmp_path_factory):
    yield from service_of(tmp_path_factory.mktemp("disabled"), "--set", "forecast.families=[]")


@pytest.fixture
def tenant(accounts):
    return accounts.tenant()


@pytest.fixture(scope="session")
def fleet(accounts):
    """Two links and a pool with enough to go by, and a link with too little."""
    tenant = accounts.tenant("fleet")
    write(tenant, link_rows("link-1", 20))
    write(tenant, link_rows("link-2", 20))
    write(tenant, link_rows("short", 4))
    write(tenant, pool_rows("pool-1"))
    return tenant


@pytest.fixture
def clock():
    return MovedClock()


@pytest.fixture
def plane():
    return Plane.in_memory("acme")


@pytest.fixture
def store(tmp_path):
    tenant = EmbeddedPredictions(tmp_path / "forecast", bytes(32))
    tenant.ensure()
    yield tenant
    tenant.close()


@pytest.fixture
def releases(store, clock):
    tenant = Releases(store, clock)
    tenant.promote("snr")
    return tenant
