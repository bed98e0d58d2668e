"""Servers of the database end under load: none acknowledged is lost, none is stored twice.

`make failover FAULTS=full` makes hundreds of short rounds of each fault (`make failover`: 2 longer
ones) and prints their figures.
"""

from __future__ import annotations

import os
import random
from contextlib import ExitStack

import pytest

from fleetcast.engine import Cluster, Planes
from tests.waiting import until

from .load import Load
from .nodes import engine, servers

NODES = 3
FULL = os.environ.get("FAULTS") == "full"
ROUNDS = int(os.environ.get("FAILOVERS", "150" if FULL else "2"))
BATCHES = 20 if FULL else 100  # of each writer before, amid and after a fault
UNKNOWN_EACH = 10 if FULL else 2  # rounds, of which one lasts until writes end as unknown
DICE = random.Random(os.environ.get("FAULTS_SEED", "7"))
rounds = pytest.mark.parametrize("number", range(ROUNDS))


@pytest.fixture(scope="module")
def nodes(database):
    """Planes as three nodes have them, which no round opens anew."""
    url = f"{database}?options=-csearch_path%3Dfailover{DICE.randrange(2**32)}"
    clusters = [Cluster(url) for _ in range(NODES)]
    clusters[0].install("test", b"check")
    return [Planes.in_cluster(cluster) for cluster in clusters]


@pytest.fixture
def undo():
    """All servers are back, each following the primary, before and after a round."""
    with ExitStack() as left:
        all_follow()
        yield left
    all_follow()


def all_follow():
    standbys = len(servers()) - 1
    if standbys < 2:
        pytest.skip("the database has fewer than three servers")
    until(lambda: engine("standbys") == str(standbys))


def load_of(nodes):
    return Load.on(nodes).running()


def until_refused(load, number):
    """Until reads are refused, or so long that each writer is told of an unknown end."""
    load.until(lambda: all(load.refused) if number % UNKNOWN_EACH == 1 else load.refused_reads)


@rounds
def test_a_standby_that_is_killed_is_missed_by_nobody(nodes, undo, number):
    standbys = [each for each in servers() if each != engine("primary")]
    with load_of(nodes) as load:
        load.goes_on(DICE.randrange(1, BATCHES))
        gone = standbys[number % 2]
        undo.callback(engine, "resume", gone)
        engine("kill", gone)
        load.goes_on(BATCHES)
        undo.close()
        load.goes_on(BATCHES)
    load.assert_kept("standby killed")
    assert (sum(load.refused), load.refused_reads) == (0, 0)


@rounds
def test_a_primary_that_hangs_and_wakes_up_loses_nothing(nodes, undo, number):
    primary = engine("primary")
    with load_of(nodes) as load:
        load.goes_on(DICE.randrange(1, BATCHES))
        undo.callback(engine, "thaw", primary)
        engine("freeze", primary)
        until_refused(load, number)
        undo.close()
        load.goes_on(BATCHES)
    load.assert_kept("primary frozen")
    assert load.refused_reads > 0


@rounds
def test_a_standby_takes_over_from_a_primary_that_is_killed(nodes, undo, number):
    del number
    primary = engine("primary")
    with load_of(nodes) as load:
        load.goes_on(DICE.randrange(1, BATCHES))
        undo.callback(engine, "rejoin", primary)
        engine("kill", primary)
        engine("promote")
        load.goes_on(BATCHES)
        assert engine("primary") != primary
        undo.close()  # from a backup of the new one, while writers write
        load.goes_on(BATCHES)
    load.assert_kept("primary killed")


@rounds
def test_all_servers_are_killed_and_come_back(nodes, undo, number):
    with load_of(nodes) as load:
        load.goes_on(DICE.randrange(1, BATCHES))
        for each in servers():
            undo.callback(engine, "resume", each)
            engine("kill", each)
        until_refused(load, number)
        undo.close()
        load.goes_on(BATCHES)
    load.assert_kept("all killed")
    assert load.refused_reads > 0
