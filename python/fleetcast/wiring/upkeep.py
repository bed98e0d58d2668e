"""One tenant's upkeep: when it is tried again after it failed, and since when it fails."""

from __future__ import annotations

_RETRY_FIRST_SECONDS = 1.0
_RETRY_MAX_SECONDS = 300.0
_LEAD_LOGGED_EVERY_SECONDS = 60.0
_DOUBLINGS_MAX = 16  # more than it takes to get there; a power without a bound would overflow


class Upkeep:
    """How the upkeep of one tenant's store goes. Times are seconds since 1970."""

    def __init__(self) -> None:
        self.failing_since: float | None = None
        self.retry_at = 0.0
        self.lead_seconds = 0
        self._failures = 0
        self._lead_logged_at: float | None = None

    def failed(self, now: float) -> float:
        """It failed again; returns the seconds until it is tried again."""
        if self.failing_since is None:
            self.failing_since = now
        doublings = min(self._failures, _DOUBLINGS_MAX)
        seconds = min(_RETRY_FIRST_SECONDS * (1 << doublings), _RETRY_MAX_SECONDS)
        self._failures += 1
        self.retry_at = now + seconds
        return seconds

    def succeeded(self) -> bool:
        """It did not fail; true where it did before."""
        recovered = self.failing_since is not None
        self.failing_since, self.retry_at, self._failures = None, 0.0, 0
        return recovered

    def note_lead(self, seconds: int, now: float) -> bool:
        """Its last write lies so far ahead of the clock; true where a line should say so again."""
        self.lead_seconds = seconds
        logged_at = self._lead_logged_at
        if not seconds or (logged_at is not None and now < logged_at + _LEAD_LOGGED_EVERY_SECONDS):
            return False
        self._lead_logged_at = now
        return True
