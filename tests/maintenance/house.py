"""Stores of three tenants, and who looks after them."""

from __future__ import annotations

import time
from concurrent.futures import wait

from fleetcast.accounts import ControlStore, Tenants
from fleetcast.engine import Engine, encode_records
from fleetcast.maintenance.crash_notes import CrashNotes
from fleetcast.maintenance.stores import Maintenance
from fleetcast.metrics import Counters, Totals, sample

MASTER_KEY = bytes(32)
RECORD = {
    "measurement": "link",
    "time": "2026-01-01",
    "tags": {"entity_id": "a"},
    "fields": {"snr_db": 1.0},
}


class FailingEngine(Engine):
    """Raises `failure` instead of opening the planes of the accounts in `failing`.

    Calls `before_opening` first.
    """

    failure: BaseException
    failing: frozenset[str] = frozenset()
    before_opening = staticmethod(lambda _account_id: None)

    def plane(self, account_id, tenant_key):
        self.before_opening(account_id)
        if account_id in self.failing:
            raise self.failure
        return super().plane(account_id, tenant_key)


class House:
    """Three tenants and who looks after them, at a time that the test sets."""

    def __init__(self, root):
        if not (root / "control").exists():
            ControlStore.create(root / "control", MASTER_KEY)
        self.now = float(int(time.time()) + 60)  # after whatever is written
        self.ahead = 0.0
        """Seconds that the wall clock is ahead of the right time."""
        self.after_seconds = 0
        self.store = ControlStore.embedded(root / "control", MASTER_KEY)
        self.engine = FailingEngine(root / "planes", MASTER_KEY)
        self.counters = Counters.alone()
        self.tenants = Tenants(self.store, self.engine)
        if not self.tenants.all():
            for name in ("alpha", "beta", "gamma"):
                self.tenants.create(name)
        self.accounts = {tenant.name: tenant.account_id for tenant in self.tenants.all()}
        self.maintenance = Maintenance(
            self.store,
            self.engine,
            self.counters,
            lambda: self.after_seconds,
            CrashNotes(root / "under-way"),
            clock=lambda: self.now,
            wall=lambda: self.now + self.ahead,
        )

    def write(self, *records, now_ns=None):
        """As another process does it, at the real time unless told another."""
        self.engine.close()
        engine = Engine(self.engine.folder("x").parent, MASTER_KEY)
        for name, account_id in self.accounts.items():
            engine.plane(account_id, name).write_json(
                encode_records(records or [RECORD]), now_ns=now_ns
            )
        engine.close()

    def look(self):
        """One look, and the end of all it has begun; raises what a thread let through."""
        done, _ = wait(self.maintenance.begin_due())
        for future in done:
            future.result()
        return len(done)

    def segments(self, *names):
        return {
            name: self.engine.plane(self.accounts[name], name).stats().segments for name in names
        }

    def shown(self, family, name):
        return Totals(self.counters.shared).of(sample(family, tenant=name))

    def close(self):
        self.maintenance.close()
        self.engine.close()
        self.store.close()
