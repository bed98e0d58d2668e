"""How many batches a process computes at once: one of a tenant, and a few in all.

Features and models hold the interpreter, so more at once would be no faster, and what other tenants
ask for meanwhile would have to wait for all of them.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPUTING_MAX = 2
WAIT_SECONDS = 5.0
"""A request that waits longer holds its thread in vain."""


class _Turn:
    """The turn of one tenant, and how many requests have it or wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


class Turns:
    """Whose turn it is. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, _Turn] = {}
        self._free = threading.BoundedSemaphore(COMPUTING_MAX)

    @contextmanager
    def turn(self, account_id: str) -> Iterator[bool]:
        """Waits for the turn of a tenant; false where it did not come in time."""
        until = time.monotonic() + WAIT_SECONDS
        with self._lock:
            mine = self._of.setdefault(account_id, _Turn())
            mine.users += 1
        try:
            with _held(mine.lock, until) as first:
                if not first:
                    yield False
                    return
                with _held(self._free, until) as second:
                    yield second
        finally:
            with self._lock:
                mine.users -= 1
                if not mine.users:
                    del self._of[account_id]


@contextmanager
def _held(lock: threading.Lock | threading.Semaphore, until: float) -> Iterator[bool]:
    """Holds a lock until the end of the block, if it can be had in time."""
    held = lock.acquire(timeout=max(until - time.monotonic(), 0.0))
    try:
        yield held
    finally:
        if held:
            lock.release()
