"""N6: shares of what all use, and turns at the threads."""

from __future__ import annotations

import threading

import pytest

from fleetcast.surface.fair_queue import FairQueue, Lane
from fleetcast.surface.shares import Share


def taken(share, owner, most):
    """Counts how many of one each an owner gets."""
    count = 0
    while share.take(owner, 1, most):
        count += 1
    return count


def test_one_owner_gets_half_and_the_next_half_of_what_is_left():
    share = Share()
    assert [taken(share, owner, 64) for owner in "abcdefgh"] == [32, 16, 8, 4, 2, 1, 1, 0]
    share.give("a", 1)  # what is given back is shared by the same rule
    assert taken(share, "b", 64) == 0
    assert taken(share, "h", 64) == 1


def test_what_is_larger_than_the_bound_passes_alone():
    share = Share()
    assert share.take("a", 11, 10)
    assert not share.take("b", 1, 10)
    share.give("a", 11)
    assert share.take("b", 10, 10)
    assert not share.take("b", 1, 10)


def test_nothing_may_be_taken_and_given_back_any_number_of_times():
    """The batch of a call without records has no bytes."""
    share = Share()
    assert all(share.take("a", 0, 10) for _ in range(3))
    for _ in range(3):
        share.give("a", 0)
    assert share.take("a", 10, 10)


def order(turns, count):
    """Items that one thread serves, one after the other."""
    served = []
    for _ in range(count):
        lane, item = turns.get()
        served.append(item)
        turns.done(lane)
    return served


def test_owners_take_turns_however_much_one_has_queued():
    turns = FairQueue(1)
    for number in range(1_000):
        turns.put(Lane("a"), f"a{number}")
    for item in ("b0", "b1"):
        turns.put(Lane("b"), item)
    assert order(turns, 5) == ["a0", "b0", "a1", "b1", "a2"]
    assert len(turns) == 997


def test_an_owner_holds_no_more_threads_than_it_leaves_to_others():
    turns = FairQueue(4)
    for number in range(20):
        turns.put(Lane("a", str(number % 2)), number)  # lanes of one owner are one owner
    held = [turns.get() for _ in range(4)]
    assert [item for _, item in held] == [0, 1, 2, 3]
    turns.put(Lane("b"), "other")
    assert turns.get() == (Lane("b"), "other")  # though 16 of the first one's came before it
    for lane in (Lane("b"), held[0][0]):
        turns.done(lane)
    assert turns.get() == (Lane("a", "0"), 4)


def test_a_lane_that_may_not_start_waits_until_it_may():
    shut = {Lane("a", "read")}
    turns = FairQueue(2, lambda lane, _item: lane not in shut)
    for number in range(3):
        turns.put(Lane("a", "read"), f"read {number}")
    turns.put(Lane("a", "write"), "write")
    assert order(turns, 1) == ["write"]
    late = turns.withdraw(Lane("a", "read"), lambda item: item == "read 0")
    assert late == ["read 0"]
    shut.clear()
    turns.retry()
    assert order(turns, 2) == ["read 1", "read 2"]
    assert len(turns) == 0
    assert turns.lanes() == []


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_all_that_waits_is_done_before_the_threads_end(threads):
    """Also what could not start when the end was announced, since its owner held its share."""
    turns, done, may_go_on = FairQueue(1), [], threading.Event()

    def work():
        while (task := turns.get()) is not None:
            lane, item = task
            may_go_on.wait()
            done.append(item)
            turns.done(lane)

    for number in range(50):
        turns.put(Lane("ab"[number % 2]), number)
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    turns.close()
    may_go_on.set()
    for worker in workers:
        worker.join()
    assert sorted(done) == list(range(50))


def test_many_threads_serve_every_item_once():
    turns, done, lock = FairQueue(4), [], threading.Lock()

    def work():
        while (task := turns.get()) is not None:
            lane, item = task
            with lock:
                done.append((lane.owner, item))
            turns.done(lane)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for number in range(3_000):
        turns.put(Lane(f"owner-{number % 7}"), number)
    turns.close()
    for worker in workers:
        worker.join()
    assert len(done) == 3_000
    assert len(set(done)) == 3_000


def test_lanes_are_served_in_order():
    turns = FairQueue(1)
    for number in range(100):
        turns.put(Lane("ab"[number % 2]), number)
    assert order(turns, 100) == list(range(100))
