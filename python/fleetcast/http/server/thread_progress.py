"""Checks that the threads of a worker take the requests that wait for them."""

from __future__ import annotations

_STUCK_SECONDS = 60.0
"""Longer than any request takes, so that a disk or database that hangs for a while ends no worker.
"""
_LOOK_SECONDS_MAX = 1.0
"""Most that one look adds to the waiting time, even if the process itself was stopped for longer.
"""


class ThreadProgress:
    """Compares counts of requests that threads took. `now` is the monotonic clock in seconds."""

    def __init__(self, now: float) -> None:
        self._taken_before = 0
        self._stuck_seconds = 0.0
        self._looked_at = now

    def is_stuck(self, waiting: int, taken: int, now: float) -> bool:
        """Returns true if requests have waited for a minute in which no thread has taken any.

        `waiting` requests wait for a thread. Threads have taken `taken` requests so far, including
        requests that the front answers by itself. Call the method about once a second. Example:
        with `waiting=3` and `taken=70` at 61 calls in a row, a second apart, the last call returns
        true.
        """
        seconds, self._looked_at = min(now - self._looked_at, _LOOK_SECONDS_MAX), now
        is_moving = waiting == 0 or taken != self._taken_before
        self._taken_before = taken
        self._stuck_seconds = 0.0 if is_moving else self._stuck_seconds + seconds
        return self._stuck_seconds >= _STUCK_SECONDS
