"""Several nodes look after the same stores: the one that comes first does it, others wait."""

from __future__ import annotations

from concurrent.futures import wait

import pytest

from fleetcast.maintenance.crash_notes import CrashNotes
from fleetcast.maintenance.stores import Maintenance
from fleetcast.metrics import Counters

from .house import House

AFTER_SECONDS = 300
NEGLECTED_SECONDS = 60


class Node:
    """One that looks after the house's tenants, and comes first for those in `preferred`."""

    def __init__(self, house, name):
        self.preferred = set()
        self.maintenance = Maintenance(
            house.store,
            house.engine,
            Counters.alone(),
            lambda: AFTER_SECONDS,
            CrashNotes(house.root / name),
            clock=lambda: house.now,
            wall=lambda: house.now,
            prefers=lambda account_id: account_id in self.preferred,
        )

    def round(self):
        """Does what is due; the number of stores that it opened for that."""
        done = self.maintenance.begin_due()
        wait(done)
        return len(done)


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    house.root = tmp_path
    yield house
    house.close()


@pytest.fixture
def nodes(house):
    """Two of them, the first of which comes first for all stores, each of which has rows."""
    nodes = [Node(house, name) for name in ("one", "two")]
    nodes[0].preferred |= set(house.accounts.values())
    house.write()
    assert [node.round() for node in nodes] == [len(house.accounts), 0]
    yield nodes
    for node in nodes:
        node.maintenance.close()


def segments(house):
    return set(house.segments(*house.accounts).values())


def test_a_long_look_at_the_tenants_shows_life_meanwhile(house):
    """B11: the watch would end a node whose database takes a minute for thousands of tenants."""
    lived = []

    def prefers(_account_id):
        house.now += 12.0
        return True

    maintenance = Maintenance(
        house.store,
        house.engine,
        Counters.alone(),
        lambda: AFTER_SECONDS,
        CrashNotes(house.root / "slow"),
        clock=lambda: house.now,
        wall=lambda: house.now,
        prefers=prefers,
    )
    began = house.now
    wait(maintenance.begin_due(lambda: lived.append(house.now)))
    assert lived == [began + 12.0, began + 24.0]
    maintenance.close()


def test_a_store_is_opened_by_the_node_that_comes_first_alone(house, nodes):
    one, two = nodes
    for _ in range(5):
        house.now += AFTER_SECONDS
        assert two.round() == 0
        assert one.round() == len(house.accounts)
        assert segments(house) == {1}
        house.write()
        assert (one.round(), two.round()) == (0, 0)
        house.now += NEGLECTED_SECONDS
        assert two.round() == 0  # it was done meanwhile


def test_a_store_that_is_left_undone_is_taken_by_another_after_a_minute(house, nodes):
    _, two = nodes
    house.now += AFTER_SECONDS
    assert two.round() == 0
    house.now += NEGLECTED_SECONDS
    assert two.round() == len(house.accounts)
    assert segments(house) == {1}


def test_preference_that_passes_on_takes_the_store_up_at_once(house, nodes):
    one, two = nodes
    house.now += AFTER_SECONDS
    one.preferred, two.preferred = two.preferred, one.preferred
    assert (one.round(), two.round()) == (0, len(house.accounts))
    assert segments(house) == {1}
