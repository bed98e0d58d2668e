"""Machines are cut off from each other while gateways write: what is refused, and what is kept.

Each has a network namespace of its own; packets between two that are cut off are dropped without
a word. `make failover FAULTS=full` makes many short rounds (`make failover`: one) and prints their
figures.
"""

from __future__ import annotations

import itertools
import os
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.service.service import command, start
from tests.waiting import until

from .gateway import UNAVAILABLE, tenant_load
from .network import HERE, NET, NO_NETWORK, Network
from .nodes import engine, make_nodes, servers

SERVERS = ["1", "2", "3"]
NODES = ["11", "12", "13"]
OBJECTS = "21"
FULL = os.environ.get("FAULTS") == "full"
ROUNDS = int(os.environ.get("CUTS", "50" if FULL else "1"))
BATCHES = 10
DICE = random.Random(os.environ.get("FAULTS_SEED", "7"))
ANSWERED_SECONDS = 2.0
rounds = pytest.mark.parametrize("number", range(ROUNDS))


class Place:
    """Three servers, three nodes and the objects, each a machine of its own."""

    def __init__(self, network: Network, folder: Path, left: ExitStack) -> None:
        self.network = network
        for number in SERVERS:
            network.add(number, number)
        network.add(OBJECTS, "s3")
        patch = left.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("ENGINE_WORK", str(folder / "engine"))
        patch.setenv("ENGINE_NET", NET)
        patch.setenv("ENGINE_NETNS", network.prefix)
        patch.setenv("ENGINE_S3_HOST", f"{NET}.{OBJECTS}")
        # The server's parts speak through sockets in /tmp that are named after its ports.
        patch.setenv("ENGINE_S3_PORT", str(int(os.environ.get("ENGINE_S3_PORT", "28333")) + 50))
        left.callback(engine, "end")
        patch.setenv("DATABASE", engine("start", "3").partition("DATABASE=")[2])
        patch.setenv("OBJECTS", engine("s3").partition("OBJECTS=")[2])
        self.folders = make_nodes(folder, len(NODES))
        installation = left.enter_context(opened(DataDirectory(self.folders[0]), os.environ))
        self._installation, self._tenants = installation, itertools.count()
        self._services = []
        for number, home in zip(NODES, self.folders, strict=True):
            addresses = ("--http", f"{NET}.{number}:0", "--admin", f"{NET}.{number}:0")
            addresses += ("--workers", "1")  # so that what was read once is warm
            within = network.add(number, f"node{number}")
            self._services.append(start(home, "", *addresses, within=within))
            left.callback(self._services[-1].stop)

    def tenant(self):
        """A new one, its writers, and a client of each node."""
        return tenant_load(self._installation, f"tenant-{next(self._tenants)}", self._services)


@pytest.fixture(scope="module")
def whole(database):
    del database
    if not Network.is_allowed():
        pytest.skip(NO_NETWORK)
    folder = Path(os.environ["ENGINE_WORK"]).parent
    with (
        tempfile.TemporaryDirectory(dir=folder) as home,
        Network() as network,
        ExitStack() as left,
    ):
        Path(home).chmod(0o711)
        yield Place(network, Path(home), left)


@pytest.fixture
def place(whole):
    """The machines, all of which reach each other before and after a round."""
    all_follow()
    yield whole
    whole.network.heal()
    all_follow()


def all_follow():
    until(lambda: engine("standbys") == str(len(servers()) - 1))


def refused_in_time(ask):
    """The answer of a request must be that the database or the objects are away, and be quick."""
    began = time.monotonic()
    answer = ask()
    seconds = time.monotonic() - began
    assert (answer.status, answer.json) == (503, UNAVAILABLE)
    assert seconds < ANSWERED_SECONDS


@rounds
def test_a_node_that_is_cut_off_from_the_database_refuses_and_the_others_go_on(place, number):
    off = number % len(NODES)
    others = {0, 1, 2} - {off}
    load, gateways = place.tenant()
    with load.running():
        load.goes_on(DICE.randrange(1, BATCHES))
        place.network.cut([NODES[off]], SERVERS)
        for _ in range(3):
            refused_in_time(gateways[off].newest)
        load.goes_on(BATCHES, others)
        place.network.heal()
        load.goes_on(BATCHES)
    load.assert_kept("node and database")
    assert (load.refusals(others), load.refused_reads) == (0, 0)


@rounds
def test_while_the_objects_are_away_writes_and_warm_reads_go_on(place, number):
    load, gateways = place.tenant()
    cold, warm = gateways[number % len(NODES)], gateways[(number + 1) % len(NODES)]
    with load.running():
        load.goes_on(BATCHES)
        command(place.folders[0], "compact")
        assert warm.newest().status == 200  # it has read what left the log
        place.network.cut(NODES, [OBJECTS])
        refused_in_time(cold.rows)
        assert warm.newest().status == 200
        load.goes_on(BATCHES)
        refused_in_time(cold.rows)
        place.network.heal()
        assert until(lambda: cold.rows().status == 200)
    load.assert_kept("nodes and objects")
    assert (sum(load.refused), load.refused_reads) == (0, 0)


@rounds
def test_a_standby_that_is_cut_off_from_the_primary_is_missed_by_nobody(place, number):
    load, _ = place.tenant()
    primary = engine("primary")
    standbys = [each for each in SERVERS if each != primary]
    with load.running():
        load.goes_on(DICE.randrange(1, BATCHES))
        place.network.cut([primary], [standbys[number % 2]])
        load.goes_on(BATCHES)
        place.network.heal()
        load.goes_on(BATCHES)
    load.assert_kept("primary and a standby")
    assert (sum(load.refused), load.refused_reads) == (0, 0)


@rounds
def test_a_primary_that_is_cut_off_from_all_standbys_acknowledges_nothing(place, number):
    del number
    load, gateways = place.tenant()
    primary = engine("primary")
    with load.running():
        load.goes_on(DICE.randrange(1, BATCHES))
        place.network.cut([primary], [each for each in SERVERS if each != primary])
        load.until(lambda: sum(load.refused))
        assert [gateway.newest().status for gateway in gateways] == [200] * len(NODES)
        place.network.heal()
        load.goes_on(BATCHES)
    load.assert_kept("primary and all standbys")
    assert load.refused_reads == 0


@rounds
def test_a_primary_that_is_cut_off_from_all_is_replaced_and_not_believed_again(place, number):
    del number
    load, _ = place.tenant()
    old = engine("primary")
    with load.running():
        load.goes_on(DICE.randrange(1, BATCHES))
        others = [each for each in SERVERS if each != old]
        place.network.cut([old], [*others, *NODES, HERE])
        engine("promote")
        load.goes_on(BATCHES)
        assert engine("primary") in others
        place.network.heal()
        load.goes_on(BATCHES)
        engine("kill", old)
        engine("rejoin", old)
        load.goes_on(BATCHES)
    load.assert_kept("primary and all")


@rounds
def test_nodes_do_not_need_each_other(place, number):
    del number
    load, _ = place.tenant()
    with load.running():
        for one, other in itertools.combinations(NODES, 2):
            place.network.cut([one], [other])
        load.goes_on(BATCHES)
    load.assert_kept("node and node")
    assert (sum(load.refused), load.refused_reads) == (0, 0)
