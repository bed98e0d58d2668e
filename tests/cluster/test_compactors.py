"""A compactor is paused beyond its lease while another goes on: nothing is lost or there twice.

Time is not waited for: the database is told that the lease has run out, but in each hundredth round
of `make failover FAULTS=full` (`make failover`: 2 rounds).
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from fleetcast.engine import Cluster, Planes
from tests.waiting import until

from .load import KEY, Load
from .nodes import engine

FULL = os.environ.get("FAULTS") == "full"
ROUNDS = int(os.environ.get("COMPACTORS", "150" if FULL else "2"))
WAITED_EACH = 100
BATCHES = 10
LEASE_SECONDS = 30
DICE = random.Random(os.environ.get("FAULTS_SEED", "7"))


class Place:
    """Three nodes with a folder of objects, and compactors in processes of their own."""

    def __init__(self, database, folder):
        self._schema = f"compactors{secrets.token_hex(8)}"
        self._url = f"{database}?options=-csearch_path%3D{self._schema}"
        self._objects, self._folder = f"file://{folder}/objects", folder
        clusters = [self._cluster(f"cache{number}") for number in range(3)]
        clusters[0].install("test", b"check")
        self.nodes = [Planes.in_cluster(cluster) for cluster in clusters]

    def _cluster(self, cache):
        return Cluster(self._url, objects=self._objects, cache=self._folder / cache)

    @contextmanager
    def compactor(self, plane):
        """The process, and the lines it has printed so far."""
        arguments = (self._url, self._objects, str(self._folder / "compactor"), plane)
        command = [sys.executable, "-m", "tests.cluster.compactor", *arguments]
        lines = []
        with (
            ThreadPoolExecutor(1) as pool,
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        ):
            try:
                pool.submit(read_into, lines, process.stdout)
                yield process, lines
            finally:
                process.kill()

    def sql(self, statement):
        return engine("sql", f"SET search_path = {self._schema}; {statement}").split()

    def run_out(self, plane):
        late = f"UPDATE plane SET held_until = '-infinity' WHERE plane = '{plane}'"  # noqa: S608 - its own id
        self.sql(late)

    def is_held(self, plane):
        held = f"SELECT held_until > clock_timestamp() FROM plane WHERE plane = '{plane}'"  # noqa: S608 - its own id
        return self.sql(held)[-1] == "t"


def read_into(lines, pipe):
    for line in pipe:
        lines.append(line)


@pytest.fixture(scope="module")
def place(database, tmp_path_factory):
    return Place(database, tmp_path_factory.mktemp("compactors"))


def paused(place, process, plane):
    """Stops a compactor that holds the lease."""

    def look():
        time.sleep(DICE.uniform(0, 0.05))
        process.send_signal(signal.SIGSTOP)
        if place.is_held(plane):
            return True
        process.send_signal(signal.SIGCONT)
        return False

    until(look)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_compactor_that_is_paused_beyond_its_lease_changes_nothing(place, number):
    load = Load.on(place.nodes)
    with load.running(), place.compactor(load.name) as (process, lines):
        load.goes_on(BATCHES)
        until(lambda: any("Compacted" in line for line in lines))
        paused(place, process, load.name)
        if number % WAITED_EACH == WAITED_EACH - 1:
            time.sleep(LEASE_SECONDS)
        else:
            place.run_out(load.name)
        load.goes_on(BATCHES)
        other = place.nodes[0].open(load.name, KEY, "acme")
        assert until(lambda: other.compact(whole=True))
        before = len(lines)
        process.send_signal(signal.SIGCONT)
        until(lambda: len(lines) > before + 2)  # it ends what it was at, and compacts again
        load.goes_on(BATCHES)
        assert process.poll() is None
    load.assert_kept("compactor paused")
