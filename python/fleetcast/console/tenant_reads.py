"""Reads of tenants' stores, so that a store that hangs delays no other view.

Each read runs in a thread of a pool, and the view waits a few seconds for it. While a tenant has an
overdue read, the tenant's other reads are refused at once. A tenant has few threads, and all
tenants together have no more than the pool.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fleetcast.console.answers import ConsoleRefused

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

T = TypeVar("T")

THREADS_MAX = 16
THREADS_PER_TENANT_MAX = 4
_RETRY = ("Retry-After", "5")


class _Read(NamedTuple):
    future: Future[Any]
    begun_at: float


class TenantReads:
    """Reads under way, by tenant. The console waits `patience_seconds` for each read."""

    def __init__(
        self, patience_seconds: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience_seconds = patience_seconds
        self._clock = clock
        self._pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="console")
        self._lock = threading.Lock()
        self._under_way: dict[str, list[_Read]] = {}

    def run(self, tenant: str, read: Callable[[], T]) -> T:
        """Runs a read of a tenant's store and returns its result.

        Raises `ConsoleRefused`, and the errors of `read`.
        """
        future = self._begin(tenant, read)
        try:
            return future.result(self._patience_seconds)
        except TimeoutError:
            if future.done():
                raise
            raise _hangs(tenant) from None

    def _begin(self, tenant: str, read: Callable[[], T]) -> Future[T]:
        with self._lock:
            self._forget_done()
            mine = self._under_way.get(tenant, [])
            overdue = self._clock() - self._patience_seconds
            if any(each.begun_at <= overdue for each in mine):
                raise _hangs(tenant)
            busy = sum(map(len, self._under_way.values())) >= THREADS_MAX
            if busy or len(mine) >= THREADS_PER_TENANT_MAX:
                message = "Other reads are under way: it is tried again."
                raise ConsoleRefused(503, "busy", message, _RETRY)
            future = self._pool.submit(read)
            self._under_way.setdefault(tenant, []).append(_Read(future, self._clock()))
            return future

    def _forget_done(self) -> None:
        living = {
            tenant: [each for each in reads if not each.future.done()]
            for tenant, reads in self._under_way.items()
        }
        self._under_way = {tenant: reads for tenant, reads in living.items() if reads}


def _hangs(tenant: str) -> ConsoleRefused:
    message = f"The store of {tenant} does not answer: look at its disk, and at the log."
    return ConsoleRefused(503, "store_hangs", message, _RETRY)
