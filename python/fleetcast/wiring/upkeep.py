"""One tenant's upkeep: when it is tried again after it failed, and since when it fails."""

from __future__ import annotations

_RETRY_FIRST_SECONDS = 1.0
_RETRY_MAX_SECONDS = 300.0
_DOUBLINGS_MAX = 16  # more than it takes to get there; a power without a bound would overflow


class Upkeep:
    """How the upkeep of one tenant's store goes. Times are seconds since 1970."""

    def __init__(self) -> None:
        self.failing_since: float | None = None
        self.retry_at = 0.0
        self._failures = 0

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
