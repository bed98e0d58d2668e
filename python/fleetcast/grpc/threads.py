"""Threads beside an event loop: they do what blocks, and the loop learns what came of it.

A thread pool of the standard library would do the same with locks, a second future and a callback
for each job, which together cost as much as everything else that the handler does.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fleetcast.engine import Jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.engine import Plane

    End = Callable[[Any, BaseException | None], None]

T = TypeVar("T")


class Threads:
    """`owner_max` jobs at once for each owner, and as many beside them for all others.

    Use it from one event loop.
    """

    def __init__(self, owner_max: int) -> None:
        self._jobs: Jobs[End] = Jobs(owner_max)
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, owner: str, job: Callable[[], T]) -> asyncio.Future[T]:
        """The result of `job`, which is done to its end even when nobody waits for it any more."""
        future: asyncio.Future[T] = self._listen().create_future()
        self._jobs.call(partial(settle, future), owner, job)
        return future

    def write(
        self,
        owner: str,
        plane: Plane,
        body: bytes,
        limits: Mapping[str, int | None],
        end: End,
    ) -> bool:
        """Has a batch written, and `end` called on the loop with what came of it.

        False if the plane is closed.
        """
        self._listen()
        return self._jobs.write(end, owner, plane, body, limits)

    def close(self) -> None:
        """Waits for the jobs that were begun or wait."""
        self._jobs.close()
        if self._loop is not None:
            self._loop.remove_reader(self._jobs.fileno())
        self._take()

    def _listen(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._jobs.fileno(), self._take)
        return self._loop

    def _take(self) -> None:
        for end, result, failure in self._jobs.take():
            end(result, failure)


def settle(future: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
    """Tells whoever waits, if anybody still does."""
    if future.cancelled():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
