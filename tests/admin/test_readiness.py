"""Readiness in the moments around the end of the maintenance process (J6)."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from fleetcast.admin.readiness import Readiness
from fleetcast.metrics import Counters, Shared, Totals, make_shared_memory, sample

MAINTENANCE = """
import sys, time
from fleetcast.metrics import Counters, Shared, sample
counters = Counters(Shared(int(sys.argv[1])))
progress = counters.gauge(sample("fleetcast_upkeep_progress_time_seconds"))
counters.put(progress, int(time.time()))
counters.put(counters.gauge(sample("fleetcast_processes_ready", surface="maintenance")), 1)
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def descriptor():
    created = make_shared_memory(rows=4)
    yield created
    os.close(created)


def is_well(readiness: Readiness) -> object:
    ready, document = readiness.look()
    upkeep = document["checks"]["upkeep"]["ok"]
    assert ready is upkeep
    return upkeep


def test_o5_upkeep_that_stands_still_is_seen_after_the_clock_was_ahead(descriptor, monkeypatch):
    """It seemed to go on for as long as the clock had been ahead."""
    shared = Shared(descriptor)
    maintenance = Counters(shared)
    ready = sample("fleetcast_processes_ready", surface="maintenance")
    maintenance.put(maintenance.gauge(ready), 1)
    progress = maintenance.gauge(sample("fleetcast_upkeep_progress_time_seconds"))
    maintenance.put(progress, int(time.time()) + 365 * 86_400)
    readiness = Readiness(Totals(shared), (), {})
    assert is_well(readiness)
    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began + 601)
    assert not is_well(readiness)
    maintenance.put(progress, int(time.time()))
    assert is_well(readiness)


def test_a_killed_maintenance_process_changes_nothing_until_it_fails_again_and_again(descriptor):
    """Between the end of the process and the supervisor's count of it, /readyz gave 503."""
    shared = Shared(descriptor)
    readiness = Readiness(Totals(shared), (), {})
    assert not is_well(readiness)
    process = subprocess.Popen(
        [sys.executable, "-c", MAINTENANCE, str(descriptor)],
        pass_fds=[descriptor],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    assert is_well(readiness)
    process.kill()
    process.communicate()
    assert is_well(readiness)
    supervisor = Counters(shared)
    failures = supervisor.gauge(sample("fleetcast_child_failures", child="maintenance"))
    supervisor.put(failures, 2)
    assert is_well(readiness)
    supervisor.put(failures, 3)
    assert not is_well(readiness)
    supervisor.put(failures, 0)
    assert is_well(readiness)
    supervisor.put(supervisor.gauge(sample("fleetcast_child_silent", child="maintenance")), 1)
    assert not is_well(readiness)
