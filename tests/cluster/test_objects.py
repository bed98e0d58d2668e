"""The object store fails under load: slow, silent, lying, cut off at a byte; so does the cache.

No write needs an object. A read that does is answered whole or refused, and whole once the fault
has ended. `make failover FAULTS=full` makes many rounds (`make failover`: 2 of each fault).
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from fleetcast.engine import Cluster, Planes
from fleetcast.errors import StoreUnavailable, StoreUnreachable
from tests.service.service import new_objects
from tests.waiting import until

from .load import KEY, Load
from .relay import Relay

FULL = os.environ.get("FAULTS") == "full"
ROUNDS = int(os.environ.get("OBJECT_FAULTS", "50" if FULL else "2"))
BATCHES = 10
NODES = 3
CUTS = 20  # of a round
ANSWERS_BYTES = 4096  # more than the answers that a cold read needs
LATE_SECONDS = 0.2
DICE = random.Random(os.environ.get("FAULTS_SEED", "7"))
rounds = pytest.mark.parametrize("number", range(ROUNDS))


class Place:
    """Nodes with caches of their own, and the relay between them and the objects."""

    def __init__(self, database, folder, relay):
        self.relay, self._folder = relay, folder
        self._url = f"{database}?options=-csearch_path%3Dobjects{secrets.token_hex(8)}"
        prefix, _, options = new_objects().partition("?")
        server, _, rest = options.removeprefix("endpoint=http://").partition("&")
        relay.open(server)
        self._objects = f"{prefix}?endpoint=http://{relay.address}&{rest}"
        self.clusters = [self._cluster(f"cache{node}") for node in range(NODES)]
        self.clusters[0].install("test", b"check")
        self.nodes = [Planes.in_cluster(cluster) for cluster in self.clusters]

    def _cluster(self, cache):
        return Cluster(self._url, objects=self._objects, cache=self._folder / cache)

    def cache(self, node):
        return self._folder / f"cache{node}"

    def is_cold_read(self, load, cache=None):
        """False for a read by a process that has just started that is refused."""
        try:
            return load.is_read_by(self.opened(load, cache))
        except StoreUnreachable:  # of the marker, which is the first object
            return False

    def opened(self, load, cache=None):
        """A plane as a process that has just started, with an empty cache or another's."""
        cluster = self._cluster(cache or secrets.token_hex(8))
        return Planes.in_cluster(cluster).open(load.name, KEY, "acme")

    def planes(self, load):
        """The plane as each node has it, which has used objects before."""
        return [node.open(load.name, KEY, "acme") for node in self.nodes]

    @contextmanager
    def load(self):
        """Writers, who find segments, and go on after the faults that end with the block."""
        with Load.on(self.nodes).running() as load:
            load.goes_on(BATCHES)
            for plane in self.planes(load):
                until(partial(plane.compact, whole=True))
            load.goes_on(DICE.randrange(1, BATCHES))
            yield load
            self.relay.behave()
            load.until(lambda: self.is_cold_read(load))
            until(partial(self.opened(load).compact, whole=True))
            load.goes_on(BATCHES)
        assert (sum(load.refused), load.refused_reads) == (0, 0)


@pytest.fixture
def place(database, tmp_path):
    if "OBJECTS" not in os.environ:
        pytest.skip("no object store was started; `make cluster` does")
    with Relay() as relay:
        yield Place(database, tmp_path, relay)


@rounds
def test_a_slow_object_store_makes_cold_reads_late_or_refused(place, number):
    del number
    with place.load() as load:
        place.relay.late_seconds = LATE_SECONDS
        place.is_cold_read(load)
        load.goes_on(BATCHES)
    load.assert_kept("objects slow")


@rounds
def test_a_silent_object_store_refuses_cold_reads_and_compactions(place, number):
    del number
    with place.load() as load:
        planes = place.planes(load)
        place.relay.is_silent = True
        assert not place.is_cold_read(load)
        for plane in planes:
            with pytest.raises(StoreUnreachable):
                plane.compact(whole=True)
        load.goes_on(BATCHES)
    load.assert_kept("objects silent")


@rounds
def test_a_segment_that_is_only_said_to_be_stored_is_in_no_manifest(place, number):
    del number
    with place.load() as load:
        place.relay.is_lying = True
        for plane in place.planes(load):
            with pytest.raises(StoreUnavailable):
                plane.compact(whole=True)
        assert place.is_cold_read(load)  # all else is as before
        load.goes_on(BATCHES)
    load.assert_kept("objects lying")


@rounds
def test_an_answer_that_ends_at_any_byte_is_not_taken_for_a_whole_one(place, number):
    del number
    with place.load() as load:
        for _ in range(CUTS):
            place.relay.answer_bytes = DICE.randrange(ANSWERS_BYTES)
            place.is_cold_read(load)
            place.relay.answer_bytes = DICE.randrange(ANSWERS_BYTES)
            with suppress(StoreUnreachable):
                place.opened(load).compact(whole=True)
    load.assert_kept("objects cut at a byte")


@rounds
@pytest.mark.parametrize("fault", ["removed", "spoilt"])
def test_a_cache_under_a_running_node_is_missed_by_no_read(place, fault, number):
    node = number % NODES
    with place.load() as load:
        assert place.is_cold_read(load, f"cache{node}")
        pieces = list(place.cache(node).iterdir())
        assert pieces
        if fault == "removed":
            shutil.rmtree(place.cache(node))
        else:
            for piece in pieces:
                content = bytearray(piece.read_bytes())
                content[DICE.randrange(len(content))] ^= 1 << DICE.randrange(8)
                piece.write_bytes(content)
        assert load.is_read_by(place.planes(load)[node])
        load.goes_on(BATCHES)
    load.assert_kept(f"cache {fault}")
