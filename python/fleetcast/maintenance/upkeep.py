"""Schedule of the upkeep of one tenant's store, and since when it fails.

Most stores rest. A store is not opened if it has not changed since the last look and no upkeep is
due by time. One glance shows if the store has changed. If it has, a second glance reads the counts
of written data. Ages and delays are measured by the monotonic clock (O5).
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from fleetcast.engine import Glance, State, Tenant, Upcoming

_RETRY_FIRST_SECONDS = 1.0
_RETRY_MAX_SECONDS = 300.0
_LEAD_LOG_SECONDS = 60.0
_LEAD_SECONDS = 5.0  # a store's file time more than this ahead shows a wrong clock
_DOUBLINGS_MAX = 16  # more than the maximum needs; a power without a bound would overflow
_NEGLECTED_SECONDS = 60.0
_HELD_SECONDS = 60.0
_LOG_BYTES_DUE = 4 << 20  # until the store reports its own number
_NS_PER_SECOND = 1e9


class Moment(NamedTuple):
    """An instant by both clocks."""

    now: float
    """Seconds of the monotonic clock, for ages and delays."""
    wall: float
    """Seconds since 1970, which can be compared with the times in stores."""


@dataclass(slots=True, eq=False)
class Upkeep:
    """State of the upkeep of one store."""

    _glance: Glance
    tenant: InitVar[Tenant]
    tenant_name: str = ""
    failing_since: float | None = None
    """Seconds of the monotonic clock."""
    is_unread: bool = False
    """True if the store had rows at the first look and no upkeep has opened the store since."""
    lead_seconds: int = 0
    held: int = 0
    """Segments with expired rows that are kept because the clock is in doubt."""
    _retention_seconds: int | None = None
    _is_preferred: bool = True
    _neglected_since: float | None = None
    _failures: int = 0
    _retry_at: float = 0.0
    _state: State | None = None
    _generation: int = 0
    _log_bytes: int = 0
    _log_bytes_due: int = _LOG_BYTES_DUE
    _log_since: float | None = None
    _due_at: float | None = None
    _lead_logged_at: float | None = None
    _lead_noted_at: float | None = 0.0

    def __post_init__(self, tenant: Tenant) -> None:
        self.tenant_name = tenant.name
        self._retention_seconds = tenant.retention_seconds

    def is_due(
        self, tenant: Tenant, at: Moment, after_seconds: float, *, prefers: bool = True
    ) -> bool:
        """Returns true if upkeep is due now, with a log that may become `after_seconds` old.

        A node that does not come first does the upkeep a minute after the preferred node should
        have.
        """
        if prefers and not self._is_preferred:
            self.is_unread = True  # another node knew which upkeep is due by time
        self._is_preferred = prefers
        is_due = self._is_to_be_done(tenant, at, after_seconds)
        if prefers or not is_due:
            self._neglected_since = None
            self.is_unread &= prefers
            return is_due
        if self._neglected_since is None:
            self._neglected_since = at.now
        return at.now - self._neglected_since >= _NEGLECTED_SECONDS

    def _is_to_be_done(self, tenant: Tenant, at: Moment, after_seconds: float) -> bool:
        now = at.now
        if self.failing_since is not None:
            return self._retry_at <= now
        if tenant.retention_seconds != self._retention_seconds:
            return True
        try:
            self._notice_change(at)
        except (OSError, StoreError):
            return True  # the fault shows, and is noted, when the store is opened
        return (
            self._log_bytes >= self._log_bytes_due
            or (self._log_since is not None and now - self._log_since >= after_seconds)
            or (self._due_at is not None and now >= self._due_at)
            or self._is_lead_due(now)
        )

    def note_failure(self, now: float, times: int = 1) -> float:
        """Notes failures in a row at `now` of the monotonic clock.

        Returns the seconds until the next try. Example: 1, 2, 4 and 8 s after the first four
        failures, and 300 s at most.
        """
        self.is_unread = False
        if self.failing_since is None:
            self.failing_since = now
        self._failures += times
        doublings = min(self._failures - 1, _DOUBLINGS_MAX)
        seconds = min(_RETRY_FIRST_SECONDS * (1 << doublings), _RETRY_MAX_SECONDS)
        self._retry_at = now + seconds
        return seconds

    def note_success(self, upcoming: Upcoming, at: Moment, *, is_held: bool) -> bool:
        """Notes that the upkeep was done, and when it is next due as of `at`.

        If `is_held` is true, a doubtful clock keeps rows that have expired, so the upkeep is due
        again soon. Returns true if the upkeep failed before.
        """
        recovered = self.failing_since is not None
        self.failing_since, self._failures, self.is_unread = None, 0, False
        self._retention_seconds = upcoming.retention_seconds
        self._generation = upcoming.generation
        self._log_bytes, self._log_bytes_due = 0, upcoming.log_bytes_due
        self._log_since = self._due_at = None
        if upcoming.log_since_ns is not None:
            age = at.wall - upcoming.log_since_ns / _NS_PER_SECOND
            self._log_since = at.now - max(age, 0.0)  # the age is negative if a clock was ahead
        if upcoming.due_ns is not None:
            due_at = at.now + upcoming.due_ns / _NS_PER_SECOND - at.wall
            self._due_at = max(due_at, at.now + _HELD_SECONDS) if is_held else due_at
        return recovered

    def note_step(self) -> None:
        """Notes that the wall clock has stepped, so that upkeep by time is due at another time."""
        self.is_unread |= self._due_at is not None or self._generation > 0

    def note_lead(self, seconds: int, now: float) -> bool:
        """Notes at `now` of the monotonic clock how far the last write is ahead of the wall clock.

        Returns true if the lead is to be logged.
        """
        self.lead_seconds = seconds
        self._lead_noted_at = now
        logged_at = self._lead_logged_at
        if not seconds or (logged_at is not None and now < logged_at + _LEAD_LOG_SECONDS):
            return False
        self._lead_logged_at = now
        return True

    def _notice_change(self, at: Moment) -> None:
        """Looks at the store, and reads its counts if it has changed.

        Raises `OSError`, `StoreError`.
        """
        state = self._glance.state()
        if state == self._state:
            return
        stats = self._glance.counts()
        if self._state is None:
            self.is_unread = bool(stats.rows or stats.segments)
        elif stats.generation != self._generation:  # another process compacted or deleted
            self._due_at = at.now if self._is_preferred else None
            if not self._is_preferred:
                self._log_since = self._neglected_since = None
        self._generation = stats.generation
        if stats.log_bytes and self._log_since is None:
            self._log_since = at.now
        self._log_bytes = stats.log_bytes
        self._state = state
        if state[0] / _NS_PER_SECOND > at.wall + _LEAD_SECONDS:
            self._lead_noted_at = None

    def _is_lead_due(self, now: float) -> bool:
        """Returns true if a write may be ahead of the clock, or if the clock may have caught up."""
        if self._lead_noted_at is None:
            return True
        return self.lead_seconds > 0 and now - self._lead_noted_at >= _LEAD_LOG_SECONDS
