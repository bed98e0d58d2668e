"""Two clocks: one for the time of telemetry, and one for the age of records.

The first is set by people and services, forwards and backwards; a right to compute that ended by it
could last for ever, or no time at all. The second cannot be set. It counts from the start of the
machine, so a record also says in which run of the machine it was written.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

NS_PER_SECOND = 1_000_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_BYTES = 16
_ASKED_EVERY_NS = 10_000_000_000
_STAMP_BYTES = _BOOT_BYTES + 8

ENDLESS_NS = 1 << 63
"""The age of a record of an earlier run of the machine: older than anything may get."""


class Clock:
    """The clocks of this host, the same in all its processes.

    Making one raises `OSError` where the system does not name its run.
    """

    def __init__(self) -> None:
        self.boot = uuid.UUID(_BOOT_ID.read_text().strip()).bytes
        """Names the run of the machine."""

    def now_ns(self) -> int:
        """Nanoseconds since 1970 in UTC."""
        return time.time_ns()

    def elapsed_ns(self) -> int:
        """Nanoseconds since the machine started, its sleep included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def stamped(self, content: bytes) -> bytes:
        """A record of now."""
        return self.boot + self.elapsed_ns().to_bytes(8, "big") + content

    def age_ns(self, record: bytes) -> int:
        """Nanoseconds since a record was written."""
        if record[:_BOOT_BYTES] != self.boot:
            return ENDLESS_NS
        return self.elapsed_ns() - int.from_bytes(record[_BOOT_BYTES:_STAMP_BYTES], "big")


class SharedClock(Clock):
    """The clock of many nodes: `database_us` gives microseconds since 1970 by the database's.

    All of it is one run, however often a machine starts. The database is asked now and then; while
    it does not answer the clock goes on, and before it ever has it is this machine's.
    """

    def __init__(self, database_us: Callable[[], int]) -> None:
        self.boot = bytes(_BOOT_BYTES)
        self._database_us = database_us
        self._ahead_ns = 0
        self._asked_ns = -_ASKED_EVERY_NS

    def elapsed_ns(self) -> int:
        """Nanoseconds since 1970 by the database's clock."""
        own_ns = super().elapsed_ns()
        if own_ns - self._asked_ns >= _ASKED_EVERY_NS:
            self._asked_ns = own_ns
            try:
                database_ns = self._database_us() * 1_000
            except StoreError:
                database_ns = time.time_ns()
            self._ahead_ns = database_ns - own_ns
        return own_ns + self._ahead_ns


def content(record: bytes) -> bytes:
    """The content of a stamped record."""
    return record[_STAMP_BYTES:]
