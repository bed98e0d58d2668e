"""Limit of wrong tokens: few a minute from an address, checked before a token is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.console.answers import ConsoleRefused
from fleetcast.engine import LimiterFile
from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

FAILURES_MAX = 10
WINDOW_SECONDS = 300
LOCKOUT_SECONDS = 300


class Guesses:
    """Counts of wrong tokens by address, in a file of bounded size that outlives the process."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._file = LimiterFile(
            path,
            requests_per_minute=0,
            lockout_failures=FAILURES_MAX,
            lockout_window_seconds=WINDOW_SECONDS,
            lockout_seconds=LOCKOUT_SECONDS,
        )

    def check(self, address: str) -> None:
        """Raises `ConsoleRefused` if an address has sent too many wrong tokens.

        Every address is refused while wrong tokens cannot be counted.
        """
        try:
            seconds = self._file.lockout(address)
        except StoreError as error:
            message = f"Guesses cannot be counted ({self._name}): look at the disk."
            raise ConsoleRefused(503, "auth_unavailable", message) from error
        if seconds is not None:
            message = f"Too many tokens that were not good: wait for {seconds} s."
            field = ("Retry-After", str(seconds))
            raise ConsoleRefused(429, "auth_lockout", message, field, retry_after_seconds=seconds)

    def failed(self, address: str) -> None:
        """Counts a wrong token."""
        self._file.record_failure(address)
