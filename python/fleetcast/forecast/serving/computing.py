"""How many batches a process computes at once: one of a tenant, and a few in all.

Features and models hold the interpreter, so more at once would be no faster, and what other tenants
ask for meanwhile would have to wait for all of them.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPUTING_MAX = 2
WAIT_SECONDS = 5.0
"""A request that waits longer holds its thread in vain."""


class Turn(NamedTuple):
    """Whether the turn came in time, and whether others of the tenant had theirs meanwhile."""

    mine: bool
    waited: bool


class _Lock:
    """That of one tenant, and how many requests have it or wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


class Computing:
    """Who may compute now. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, _Lock] = {}
        self._free = threading.BoundedSemaphore(COMPUTING_MAX)

    @contextmanager
    def turn(self, account_id: str) -> Iterator[Turn]:
        """Waits for a tenant's turn, until the end of the block."""
        began = time.monotonic()
        with self._lock:
            mine = self._of.setdefault(account_id, _Lock())
            mine.users += 1
            waits = mine.users > 1
        try:
            with _held(mine.lock, began) as first:
                if first:
                    with _held(self._free, began) as second:
                        yield Turn(second, waited=waits)
                else:
                    yield Turn(mine=False, waited=True)
        finally:
            with self._lock:
                mine.users -= 1
                if not mine.users:
                    del self._of[account_id]


@contextmanager
def _held(lock: threading.Lock | threading.Semaphore, began: float) -> Iterator[bool]:
    """Holds a lock until the end of the block, if it can be had in time."""
    held = lock.acquire(timeout=max(began + WAIT_SECONDS - time.monotonic(), 0.0))
    try:
        yield held
    finally:
        if held:
            lock.release()
