"""Threads beside an event loop: they do what blocks, and the loop learns what came of it.

A thread pool of the standard library would do the same with locks, a second future and a callback
for each job, which together cost as much as everything else that the handler does.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from fleetcast.engine import FairQueue

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Threads:
    """`owner_max` jobs at once for each owner, and as many beside them for all others.

    Use it from one event loop.
    """

    def __init__(self, name: str, owner_max: int) -> None:
        self._name = name
        self._jobs: FairQueue[tuple[asyncio.Future[Any], Callable[[], Any]]] = FairQueue(owner_max)
        self._threads: list[threading.Thread] = []
        self._under_way = 0

    def run(self, owner: str, job: Callable[[], T]) -> asyncio.Future[T]:
        """The result of `job`, which is done to its end even when nobody waits for it any more."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._under_way += 1
        if len(self._threads) < min(self._under_way, self._jobs.threads_max):
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put(owner, (future, job))
        return future

    def close(self) -> None:
        """Waits for the jobs that were begun or wait."""
        self._jobs.close()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        task = self._jobs.get()
        while task is not None:
            owner, (future, job) = task
            result: object = None
            failure: BaseException | None = None
            try:
                result = job()
            except BaseException as error:  # noqa: BLE001 - it goes to whoever waits
                failure = error
            future.get_loop().call_soon_threadsafe(self._end, future, result, failure)
            del task, future, job, result, failure  # nothing is held while it waits
            task = self._jobs.get(done=owner)

    def _end(
        self, future: asyncio.Future[Any], result: object, failure: BaseException | None
    ) -> None:
        self._under_way -= 1
        settle(future, result, failure)


def settle(future: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
    """Tells whoever waits, if anybody still does."""
    if future.cancelled():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
