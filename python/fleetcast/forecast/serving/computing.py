"""A process computes a tenant's batches in turn.

Features and models hold the interpreter. So several batches at once would be no faster, and other
tenants would have to wait for all of them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_SECONDS = 5.0
"""A request that waits longer would hold its thread in vain."""


class _Lock:
    """The lock of one tenant, and the number of requests that have the lock or wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


class Computing:
    """Turns of tenants. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, _Lock] = {}

    @contextmanager
    def turn(self, account_id: str) -> Iterator[bool]:
        """Waits for a tenant's turn, which lasts until the end of the block.

        Yields false if the turn did not come in time.
        """
        with self._lock:
            tenant = self._of.setdefault(account_id, _Lock())
            tenant.users += 1
        mine = tenant.lock.acquire(timeout=WAIT_SECONDS)
        try:
            yield mine
        finally:
            if mine:
                tenant.lock.release()
            with self._lock:
                tenant.users -= 1
                if not tenant.users:
                    del self._of[account_id]
