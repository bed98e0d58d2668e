"""Notices to the service manager, such as systemd: ready, reloading, stopping, alive.

The protocol is that of sd_notify(3). The manager names a datagram socket in `NOTIFY_SOCKET`, and in
`WATCHDOG_USEC` the time within which it waits for the next sign of life.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

_SEND_SECONDS = 1.0  # the manager's queue is short, and a manager that hangs must not hang us
_ABSTRACT = "@"  # a name without a file, which the kernel writes with a zero byte


class Notices:
    """Sends notices. Without a service manager it sends none."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Takes the variables out of the environment, because gunicorn would send its own notices.

        Does not use variables that are for another process.
        """
        path = environment.pop("NOTIFY_SOCKET", "")
        period = environment.pop("WATCHDOG_USEC", "")
        own = environment.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._address = path.replace(_ABSTRACT, "\0", 1) if path.startswith(_ABSTRACT) else path
        self.alive_seconds = int(period) / 2e6 if own and period.isdecimal() else None
        """Seconds after which the next sign of life is due: half of the manager's patience."""

    def ready(self) -> None:
        """The service answers."""
        self._send("READY=1")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """The service reads its settings again, until the end of the block."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        yield
        self.ready()

    def alive(self) -> None:
        """The service works. Call it at least every `alive_seconds`."""
        if self.alive_seconds is not None:
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The service ends."""
        self._send("STOPPING=1")

    def _send(self, notice: str) -> None:
        if not self._address:
            return
        # A manager that is gone stops no service.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.settimeout(_SEND_SECONDS)
            own.sendto(notice.encode(), self._address)
