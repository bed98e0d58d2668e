"""The clock of a node steps while gateways write: none acknowledged is lost, none is stored twice.

`make failover FAULTS=full` makes many rounds (`make failover`: one) and prints their figures.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from contextlib import ExitStack
from email.utils import parsedate_to_datetime

import pytest

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.clocks.wall import WallClock
from tests.service.service import start
from tests.waiting import until

from .gateway import tenant_load
from .nodes import make_nodes

NODES = 3
FULL = os.environ.get("FAULTS") == "full"
ROUNDS = int(os.environ.get("CLOCK_STEPS", "50" if FULL else "1"))
BATCHES = 10  # of each writer after a step
STEPS_SECONDS = (3_600, -3_600, -30)
TOLD_SECONDS = 10  # less than the least step, and more than a busy machine takes to answer
DICE = random.Random(os.environ.get("FAULTS_SEED", "7"))


class Place:
    """Three nodes, each with a wall clock of its own."""

    def __init__(self, folder, left):
        folders = make_nodes(folder, NODES)
        self._installation = left.enter_context(opened(DataDirectory(folders[0]), os.environ))
        self._tenants = itertools.count()
        self.clocks = [WallClock(home) for home in folders]
        self._services = []
        for home, clock in zip(folders, self.clocks, strict=True):
            within = ["env", *(f"{name}={value}" for name, value in clock.environment.items())]
            service = start(home, "", "--workers", "1", within=within)
            left.callback(service.end)
            self._services.append(service)

    def tenant(self):
        """A new one, its writers, and a client of each node. The reader's clock is right."""
        return tenant_load(self._installation, f"tenant-{next(self._tenants)}", self._services)


def steps(clock, gateway, seconds):
    """Sets the clock of the node so far ahead, until its answers tell so."""
    clock.set_ahead(seconds)

    def is_told():
        date = parsedate_to_datetime(gateway.newest().headers["Date"])
        return abs(date.timestamp() - time.time() - seconds) < TOLD_SECONDS

    until(is_told)


@pytest.fixture(scope="module")
def place(database, tmp_path_factory):
    del database
    with ExitStack() as left:
        yield Place(tmp_path_factory.mktemp("clocks"), left)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_clock_that_steps_loses_nothing_and_stores_nothing_twice(place, number):
    load, gateways = place.tenant()
    clock, gateway = place.clocks[number % NODES], gateways[number % NODES]
    with load.running():
        load.goes_on(BATCHES)
        for seconds in (*DICE.sample(STEPS_SECONDS, len(STEPS_SECONDS)), 0):
            steps(clock, gateway, seconds)
            load.goes_on(BATCHES)
    load.assert_kept("clock of a node steps")
