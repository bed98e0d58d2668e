"""Rate limit and lockout per client, shared by all workers of a host."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fleetcast.engine import Limiter
from fleetcast.errors import StoreError, refused
from fleetcast.http.client_address import Networks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleetcast.config.sections import Limits
    from fleetcast.metrics import Counters

T = TypeVar("T")

_LOG_SECONDS = 10.0

logger = logging.getLogger(__name__)


class LimitedClient(NamedTuple):
    """A client, and the limiters that are to be asked about it."""

    rates: Limiter | None
    """`None` if the requests of the client are not counted."""
    lockouts: Limiter | None
    """`None` if nobody is locked out."""
    address: str


class ClientLimiter:
    """Rate limit and lockout as one process sees them, in files that all processes use.

    Requests from `limits.exempt` are not counted; bad keys from there are.
    """

    def __init__(
        self,
        path: Path,
        limits: Limits,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._exempt = Networks(limits.exempt)
        self._rate = limits.requests_per_minute
        self._counters = counters
        self._clock = clock
        self._rates = self._lockouts = _Shared(path, limits, counters, clock)

    def with_own_rate(self, path: Path, requests_per_minute: int) -> ClientLimiter:
        """Has requests counted in a file of their own; the lockout stays that of all listeners."""
        self._rate = requests_per_minute
        limits = replace(self._limits, requests_per_minute=requests_per_minute)
        self._rates = _Shared(path, limits, self._counters, self._clock)
        return self

    def admit(self, address: str) -> None:
        """Counts a request. Raises `Refused` (`rate_limited`, with `retry_after_seconds`)."""
        if self._is_counted(address):
            seconds = self._rates.ask(lambda limiter: limiter.admit(address))
            if seconds is not None:
                raise refused("rate_limited", retry_after_seconds=seconds)

    def check_lockout(self, address: str) -> None:
        """Raises `Refused` (`auth_lockout`, with `retry_after_seconds`)."""
        if self._limits.lockout_failures:
            seconds = self._lockouts.ask(lambda limiter: limiter.lockout(address))
            if seconds is not None:
                raise refused("auth_lockout", retry_after_seconds=seconds)

    def record_failure(self, address: str) -> None:
        """Counts a key that was sent and is no good."""
        if self._limits.lockout_failures:
            self._lockouts.ask(lambda limiter: limiter.record_failure(address))

    def limited(self, address: str) -> LimitedClient | None:
        """The question of `admit` and `check_lockout`; `None` where nobody can be asked."""
        rates = self._rates.limiter if self._is_counted(address) else None
        lockouts = self._lockouts.limiter if self._limits.lockout_failures else None
        is_known = (rates is not None or not self._is_counted(address)) and (
            lockouts is not None or not self._limits.lockout_failures
        )
        return LimitedClient(rates, lockouts, address) if is_known else None

    def _is_counted(self, address: str) -> bool:
        return self._rate > 0 and not self._exempt.has(address)


class _Shared:
    """Counts in a file that all processes use.

    They protect the service, so their own faults let requests pass: each is counted, and the
    log has one line of them every ten seconds at most. After a fault the file is opened anew, so
    what can mend does.
    """

    def __init__(
        self, path: Path, limits: Limits, counters: Counters, clock: Callable[[], float]
    ) -> None:
        self._path = path
        self._limits = limits
        self._counters = counters
        self._failed_open = counters.counter("fleetcast_limiter_failed_open_total")
        self._clock = clock
        self._logged_at: float | None = None
        self.limiter: Limiter | None = None
        """`None` until it was asked, and after a fault."""

    def ask(self, question: Callable[[Limiter], T]) -> T | None:
        """Asks the limiter; `None` where it is broken."""
        try:
            limiter = self.limiter
            if limiter is None:
                limiter = self.limiter = self._open()
            return question(limiter)
        except (StoreError, OSError) as error:
            self.limiter = None
            self._counters.add(self._failed_open)
            now = self._clock()
            if self._logged_at is None or now - self._logged_at >= _LOG_SECONDS:
                self._logged_at = now
                logger.error("rate limit and lockout are off: %s", error)  # noqa: TRY400 - the message says all
            return None

    def _open(self) -> Limiter:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Limiter.open(
            str(self._path),
            requests_per_minute=self._limits.requests_per_minute,
            lockout_failures=self._limits.lockout_failures,
            lockout_window_seconds=self._limits.lockout_window_seconds,
            lockout_seconds=self._limits.lockout_seconds,
        )
