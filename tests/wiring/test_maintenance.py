"""The upkeep of many tenants: one that fails, fails alone."""

from __future__ import annotations

from concurrent.futures import wait
from itertools import pairwise

import pytest

from fleetcast.accounts import ControlStore, Tenants
from fleetcast.engine import Engine, encode_records
from fleetcast.metrics import Counters, sample
from fleetcast.wiring.maintenance import Maintenance

from .stopped_writer import stopped_writer

MASTER_KEY = bytes(32)
RECORD = {
    "measurement": "link",
    "time": "2026-01-01",
    "tags": {"entity_id": "a"},
    "fields": {"snr_db": 1.0},
}


class Panic(BaseException):
    """As PyO3's: no `Exception`."""


class FailingEngine(Engine):
    """Raises `failure` instead of opening the planes of the accounts in `failing`."""

    failure: BaseException
    failing: frozenset[str] = frozenset()

    def plane(self, account_id, tenant_key):
        if account_id in self.failing:
            raise self.failure
        return super().plane(account_id, tenant_key)


class House:
    """Three tenants and who looks after them, at a time that the test sets."""

    def __init__(self, root):
        ControlStore.create(root / "control", MASTER_KEY)
        self.now = 1_000_000.0
        self.store = ControlStore(root / "control")
        self.engine = FailingEngine(root / "planes", MASTER_KEY)
        self.counters = Counters.alone()
        self.tenants = Tenants(self.store, self.engine)
        self.accounts = {
            name: self.tenants.create(name).account_id for name in ("alpha", "beta", "gamma")
        }
        self.maintenance = Maintenance(
            self.store, self.engine, self.counters, lambda: 0, lambda: self.now
        )

    def write(self):
        for name, account_id in self.accounts.items():
            if account_id not in self.engine.failing:
                plane = self.engine.plane(account_id, name)
                plane.write_json(encode_records([RECORD]))

    def look(self):
        """One look, and the end of all it has begun; raises what a thread let through."""
        done, _ = wait(self.maintenance.look())
        for future in done:
            future.result()
        return len(done)

    def segments(self, *names):
        return {
            name: self.engine.plane(self.accounts[name], name).stats().segments for name in names
        }

    def shown(self, family, name):
        return self.counters.shared.total(sample(family, tenant=name))

    def close(self):
        self.maintenance.close()
        self.engine.close()
        self.store.close()


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("failure", [Panic("bug"), MemoryError(), OSError(5, "disk")], ids=repr)
def test_tenants_behind_one_that_fails_are_compacted(house, failure):
    """Issue 12, point 1: a panic of one tenant's compaction ended the compaction of all."""
    house.write()
    house.engine.failure = failure
    house.engine.failing = frozenset({house.accounts["alpha"]})
    house.look()
    assert house.segments("beta", "gamma") == {"beta": 1, "gamma": 1}
    assert house.shown("fleetcast_upkeep_failing", "alpha") == 1
    assert house.shown("fleetcast_upkeep_failing", "beta") == 0
    assert house.shown("fleetcast_upkeep_failing_since_time_seconds", "alpha") == house.now
    house.engine.failing = frozenset()
    house.now += 300
    house.look()
    assert house.segments("alpha") == {"alpha": 1}
    assert house.shown("fleetcast_upkeep_failing", "alpha") == 0


def test_a_failing_tenant_backs_off_and_its_retries_stay_bounded(house):
    house.engine.failure = Panic("bug")
    house.engine.failing = frozenset({house.accounts["alpha"]})
    failed = sample("fleetcast_compaction_failed_total")
    tried_at = []
    for second in range(2_000):
        house.now = 1_000_000.0 + second
        before = house.counters.shared.total(failed)
        house.look()
        if house.counters.shared.total(failed) > before:
            tried_at.append(second)
    waits = [after - before for before, after in pairwise(tried_at)]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits == sorted(waits)
    assert waits[-1] == 300


def test_a_store_that_hangs_delays_no_other(house, tmp_path):
    house.write()
    with stopped_writer(tmp_path / "planes" / house.accounts["alpha"], MASTER_KEY):
        stuck, *others = house.maintenance.look()
        wait(others)
        assert house.segments("beta", "gamma") == {"beta": 1, "gamma": 1}
        assert not stuck.done()
        assert len(house.maintenance.look()) == 2
    stuck.result()
    assert house.segments("alpha") == {"alpha": 1}
