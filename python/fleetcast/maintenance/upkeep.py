"""Schedule of the upkeep of one tenant's store, and since when it fails.

Most stores rest. One that has not changed since the last look, and has nothing due by itself, is
not opened: a glance tells that it has not changed, and another one, which reads its counts, how
much was written to it. Ages and delays are measured by the monotonic clock (O5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from fleetcast.accounts import Tenant
    from fleetcast.engine import Glance, State, Upcoming

_RETRY_FIRST_SECONDS = 1.0
_RETRY_MAX_SECONDS = 300.0
_LEAD_LOG_SECONDS = 60.0
_LEAD_SECONDS = 5.0  # the file's own time tells of a clock that is ahead
_DOUBLINGS_MAX = 16  # more than it takes to get there; a power without a bound would overflow
_NEGLECTED_SECONDS = 60.0
_HELD_SECONDS = 60.0
_LOG_BYTES_DUE = 4 << 20  # until the store has said how much it is
_NS_PER_SECOND = 1e9


class Moment(NamedTuple):
    """An instant by both clocks."""

    now: float
    """Seconds of the monotonic clock, for ages and delays."""
    wall: float
    """Seconds since 1970, beside what stores say."""


class Upkeep:
    """State of the upkeep of one store."""

    __slots__ = (
        "_due_at",
        "_failures",
        "_generation",
        "_glance",
        "_is_preferred",
        "_lead_logged_at",
        "_lead_noted_at",
        "_log_bytes",
        "_log_bytes_due",
        "_log_since",
        "_neglected_since",
        "_retention_seconds",
        "_retry_at",
        "_state",
        "failing_since",
        "held",
        "is_unread",
        "lead_seconds",
        "tenant_name",
    )

    def __init__(self, glance: Glance, tenant: Tenant) -> None:
        self.tenant_name = tenant.name
        self.failing_since: float | None = None
        """Seconds of the monotonic clock."""
        self.is_unread = False
        """It had rows at the first look, and nobody has opened it since to see what is due."""
        self.lead_seconds = 0
        self.held = 0
        """Segments with rows to expire, which a doubtful clock keeps."""
        self._glance = glance
        self._retention_seconds = tenant.retention_seconds
        self._is_preferred = True
        self._neglected_since: float | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._state: State | None = None
        self._generation = 0
        self._log_bytes = 0
        self._log_bytes_due = _LOG_BYTES_DUE
        self._log_since: float | None = None
        self._due_at: float | None = None
        self._lead_logged_at: float | None = None
        self._lead_noted_at: float | None = 0.0

    def is_due(
        self, tenant: Tenant, at: Moment, after_seconds: float, *, prefers: bool = True
    ) -> bool:
        """True where it is to be done now, with a log that may become `after_seconds` old.

        A node that does not come first does it once the one that does has left it undone.
        """
        if prefers and not self._is_preferred:
            self.is_unread = True  # what is due by itself was known to another node
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
            return True  # the fault shows, and is noted, when it is opened
        return (
            self._log_bytes >= self._log_bytes_due
            or (self._log_since is not None and now - self._log_since >= after_seconds)
            or (self._due_at is not None and now >= self._due_at)
            or self._is_lead_due(now)
        )

    def note_failure(self, now: float, times: int = 1) -> float:
        """Notes failures in a row at `now` of the monotonic clock.

        Returns the seconds until it is tried again.
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
        """Notes that it was done, and when it is due next as of `at`.

        If `is_held`, rows are due that a doubtful clock keeps: it is done again soon. Returns true
        if it failed before.
        """
        recovered = self.failing_since is not None
        self.failing_since, self._failures, self.is_unread = None, 0, False
        self._retention_seconds = upcoming.retention_seconds
        self._generation = upcoming.generation
        self._log_bytes, self._log_bytes_due = 0, upcoming.log_bytes_due
        self._log_since = self._due_at = None
        if upcoming.log_since_ns is not None:
            age = at.wall - upcoming.log_since_ns / _NS_PER_SECOND
            self._log_since = at.now - max(age, 0.0)  # less by a clock that was ahead
        if upcoming.due_ns is not None:
            due_at = at.now + upcoming.due_ns / _NS_PER_SECOND - at.wall
            self._due_at = max(due_at, at.now + _HELD_SECONDS) if is_held else due_at
        return recovered

    def note_step(self) -> None:
        """Notes that the wall clock has stepped: what is due by itself is due at another time."""
        self.is_unread |= self._due_at is not None or self._generation > 0

    def note_lead(self, seconds: int, now: float) -> bool:
        """Notes at `now` of the monotonic clock how far the last write is ahead of the wall clock.

        Returns true if that is to be logged.
        """
        self.lead_seconds = seconds
        self._lead_noted_at = now
        logged_at = self._lead_logged_at
        if not seconds or (logged_at is not None and now < logged_at + _LEAD_LOG_SECONDS):
            return False
        self._lead_logged_at = now
        return True

    def _notice_change(self, at: Moment) -> None:
        """Looks at the store, and at its counts where it has changed.

        Raises `OSError`, `StoreError`.
        """
        state = self._glance.state()
        if state == self._state:
            return
        stats = self._glance.counts()
        if self._state is None:
            self.is_unread = bool(stats.rows or stats.segments)
        elif stats.generation != self._generation:  # somebody else compacted or deleted
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
        """True where a write may be ahead of the clock, or was and the clock may have caught up."""
        if self._lead_noted_at is None:
            return True
        return self.lead_seconds > 0 and now - self._lead_noted_at >= _LEAD_LOG_SECONDS
