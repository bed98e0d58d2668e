"""A worker whose threads take no requests is told from one that has none, or long ones (B11)."""

from __future__ import annotations

from fleetcast.http.server.thread_progress import ThreadProgress


def test_requests_that_wait_for_a_minute_untaken_are_a_worker_that_is_stuck():
    progress = ThreadProgress(1_000.0)
    assert not progress.is_stuck(3, 1_000.0)
    assert not progress.is_stuck(3, 1_059.9)
    assert progress.is_stuck(3, 1_060.0)


def test_a_worker_that_takes_one_request_now_and_then_is_not_stuck():
    progress = ThreadProgress(0.0)
    for minute in range(10):
        progress.took()
        assert not progress.is_stuck(3, minute * 59.0 + 59.0)


def test_a_worker_without_requests_is_not_stuck_however_long_it_has_none():
    progress = ThreadProgress(0.0)
    assert not progress.is_stuck(0, 0.0)
    assert not progress.is_stuck(0, 10_000.0)
    assert not progress.is_stuck(1, 10_059.9)
    assert progress.is_stuck(1, 10_060.0)
