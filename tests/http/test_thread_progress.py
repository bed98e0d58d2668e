"""A worker whose threads take no requests is told from one that has none, or long ones (B11)."""

from __future__ import annotations

from fleetcast.http.server.thread_progress import ThreadProgress


def looks(progress, waiting, start, end, taken=0):
    """Results of a look each second."""
    return [progress.is_stuck(waiting, taken, float(second)) for second in range(start, end)]


def test_requests_that_wait_for_a_minute_untaken_are_a_worker_that_is_stuck():
    progress = ThreadProgress(0.0)
    assert looks(progress, 3, 1, 63) == [False] * 59 + [True] * 3


def test_a_worker_that_takes_a_request_now_and_then_is_not_stuck():
    progress = ThreadProgress(0.0)
    for minute in range(10):
        start, taken = 60 * minute + 1, minute + 1
        assert not any(looks(progress, 3, start, start + 59, taken))


def test_a_worker_without_requests_is_not_stuck_however_long_it_has_none():
    progress = ThreadProgress(0.0)
    assert not any(looks(progress, 0, 1, 10_000))
    assert looks(progress, 1, 10_000, 10_061)[-2:] == [True, True]


def test_a_worker_that_was_stopped_with_its_machine_is_not_stuck_when_it_goes_on():
    progress = ThreadProgress(0.0)
    assert not any(looks(progress, 3, 1, 30))
    assert not progress.is_stuck(3, 0, 10_000.0)
