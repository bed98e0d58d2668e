"""A look at whether the threads of a worker take the requests that wait for them."""

from __future__ import annotations

_STUCK_SECONDS = 60.0
"""Longer than any request takes, so that a disk or database that hangs for a while ends nobody."""
_LOOK_SECONDS_MAX = 1.0
"""Share of a look in that, even if the process itself was stopped for longer."""


class ThreadProgress:
    """Counts requests that threads take, without a lock: a count that is lost changes nothing.

    `now` is the monotonic clock in seconds.
    """

    def __init__(self, now: float) -> None:
        self._taken = 0
        self._taken_before = 0
        self._stuck_seconds = 0.0
        self._looked_at = now

    def took(self) -> None:
        """Counts a request that a thread has taken."""
        self._taken += 1

    def is_stuck(self, waiting: int, now: float) -> bool:
        """Returns true if requests have waited for a minute of which no thread has taken any.

        `waiting` is the number of requests that wait for a thread. Call it about once a second.
        """
        seconds, self._looked_at = min(now - self._looked_at, _LOOK_SECONDS_MAX), now
        is_moving = waiting == 0 or self._taken != self._taken_before
        self._taken_before = self._taken
        self._stuck_seconds = 0.0 if is_moving else self._stuck_seconds + seconds
        return self._stuck_seconds >= _STUCK_SECONDS
