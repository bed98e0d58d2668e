"""Signals of the supervisor, as a descriptor to wait for."""

from __future__ import annotations

import os
import select
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_WAKEUP_BYTES = 64


class Signals:
    """Counts of requested stops and reloads. The end of a child only wakes the supervisor."""

    def __init__(self, wakeup_fd: int) -> None:
        self.fd = wakeup_fd
        self.stops = 0
        self.reloads = 0

    @staticmethod
    @contextmanager
    def caught() -> Iterator[Signals]:
        """Catches the signals until the end of the block.

        A signal after the block finds the service ending, and is ignored until the process ends.
        """
        read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signals = Signals(read_fd)

        def stop(_number: int, _frame: object) -> None:
            signals.stops += 1

        def reload(_number: int, _frame: object) -> None:
            signals.reloads += 1

        handlers = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
        handlers[signal.SIGHUP] = signal.signal(signal.SIGHUP, reload)
        handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        before = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        try:
            yield signals
        finally:
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, signal.SIG_IGN if number in _STOP_SIGNALS else handler)
            os.close(read_fd)
            os.close(write_fd)

    def wait(self, seconds: float | None, *others: int) -> list[int]:
        """Waits for a signal or for one of `others`. Returns the ready descriptors of `others`."""
        readable, _, _ = select.select([self.fd, *others], [], [], seconds)
        if self.fd in readable:
            os.read(self.fd, _WAKEUP_BYTES)
        return [descriptor for descriptor in readable if descriptor != self.fd]
