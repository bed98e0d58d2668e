"""Counters of the last minutes: moments ten seconds apart, as many as are asked for."""

from __future__ import annotations

import pytest

from fleetcast.console.history import STEP_SECONDS, History
from tests.clock import Clock

MOMENTS_MAX = 4


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def totals():
    return {"refused": 5}


@pytest.fixture
def history(clock, totals):
    return History(lambda: dict(totals), MOMENTS_MAX, clock)


def pass_time(history, clock, totals, steps):
    """One refusal in each step of time."""
    for _ in range(steps):
        clock.now += STEP_SECONDS
        totals["refused"] += 1
        history.look()


def test_growth_is_that_since_the_oldest_moment_within_the_time_asked_for(history, clock, totals):
    pass_time(history, clock, totals, 2)
    clock.now += 1
    totals["refused"] += 10
    assert history.since(60) == (21.0, {"refused": 5}, {"refused": 17})
    assert history.since(20) == (11.0, {"refused": 6}, {"refused": 17})
    # The newest moment counts, if none is as young as that.
    assert history.since(0.5) == (1.0, {"refused": 7}, {"refused": 17})


def test_moments_are_ten_seconds_apart_and_the_oldest_go(history, clock, totals):
    clock.now += STEP_SECONDS - 1
    history.look()
    assert history.steps("refused") == []
    clock.now += 1
    pass_time(history, clock, totals, 6)
    assert history.steps("refused") == [1] * (MOMENTS_MAX - 1)
    seconds, before, _ = history.since(3600)
    assert (seconds, before) == (STEP_SECONDS * (MOMENTS_MAX - 1), {"refused": 8})


def test_a_counter_that_nobody_has_counted_yet_is_0(history, clock, totals):
    totals["later"] = 3
    pass_time(history, clock, totals, 1)
    assert history.steps("later") == [3]
    assert history.steps("never") == [0]
