"""Two clocks: one for the time of telemetry, and one for the age of records.

People and services set the first clock, forwards and backwards. A right to compute that ended by it
could last for ever, or no time at all. The second clock cannot be set. It counts from the start of
the machine, so a record also says in which run of the machine it was written.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.engine import RecordStamp
from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

NS_PER_SECOND = 1_000_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_BYTES = 16
_ASKED_EVERY_NS = 10_000_000_000


class Clock:
    """The clocks of this host, the same in all its processes.

    The constructor raises `OSError` if the system does not name its run.
    """

    def __init__(self) -> None:
        self.boot = uuid.UUID(_BOOT_ID.read_text().strip()).bytes
        """The id of the machine's run."""

    def now_ns(self) -> int:
        """Nanoseconds since 1970 in UTC."""
        return time.time_ns()

    def elapsed_ns(self) -> int:
        """Nanoseconds since the machine started, its sleep included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def stamp(self) -> RecordStamp:
        """The present instant, as records have it."""
        return RecordStamp(self.boot, self.elapsed_ns())

    def stamped(self, content: bytes) -> bytes:
        """Stamps `content` with the present instant."""
        return self.stamp().stamped(content)

    def age_ns(self, record: bytes) -> int:
        """Nanoseconds since a record was written."""
        return self.stamp().age_ns(record)


class SharedClock(Clock):
    """The clock of many nodes. `database_us` returns microseconds since 1970 from the database.

    All records belong to one run, however often a machine starts. The database is asked every ten
    seconds. While it does not answer, its last lead over this machine's clock holds; before its
    first answer, the clock uses this machine's time.
    """

    def __init__(self, database_us: Callable[[], int]) -> None:
        self.boot = bytes(_BOOT_BYTES)
        self._database_us = database_us
        self._ahead_ns = time.time_ns() - super().elapsed_ns()
        self._asked_ns = -_ASKED_EVERY_NS

    def elapsed_ns(self) -> int:
        """Nanoseconds since 1970 by the database's clock."""
        own_ns = super().elapsed_ns()
        if own_ns - self._asked_ns >= _ASKED_EVERY_NS:
            self._asked_ns = own_ns
            with suppress(StoreError):
                self._ahead_ns = self._database_us() * 1_000 - own_ns
        return own_ns + self._ahead_ns
