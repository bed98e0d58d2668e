"""The library's server, and the next one when a client has ended its loop.

grpc.aio decodes the path of each call in the loop that takes all calls. A path that is no UTF-8
therefore ends this loop, while connections, threads and the process go on. The next server listens
at once. Calls that the old server has begun are finished by it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc.aio

_FINISH_SECONDS = 20.0  # for calls that the old server has begun
_BIND_SECONDS = 10.0  # for the library to close the old listener, which takes milliseconds
_RETRY_SECONDS = 0.01
_LOOP_NAME = "_server_main_loop"

logger = structlog.get_logger(__name__)


class Servers:
    """One server after the other. `make` raises `RuntimeError` if the server cannot listen."""

    def __init__(self, make: Callable[[], grpc.aio.Server]) -> None:
        self._make = make
        self._finishing: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Starts the first server. Raises `RuntimeError` if it cannot listen."""
        await self._start(self._make())

    async def keep_serving(self, stop: asyncio.Event) -> None:
        """Starts the next server whenever the loop of the last has ended, until `stop` is set.

        Raises `RuntimeError` if the next server cannot listen: then the process must be replaced.
        """
        stopping = asyncio.create_task(stop.wait())
        while True:
            await asyncio.wait((stopping, self._loop), return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                return
            logger.warning("the gRPC server starts anew", problem=_problem(self._loop))
            self._let_finish(self._server)
            await self._start(await self._next())

    async def stop(self, seconds: float) -> None:
        """Takes no more calls, and waits for calls that have begun, for `seconds` at most."""
        await asyncio.wait((asyncio.create_task(self._server.stop(seconds)), *self._finishing))

    async def _start(self, server: grpc.aio.Server) -> None:
        before = asyncio.all_tasks()
        await server.start()
        self._server = server
        (self._loop,) = (
            task
            for task in asyncio.all_tasks() - before
            if _LOOP_NAME in getattr(task.get_coro(), "__qualname__", "")
        )

    async def _next(self) -> grpc.aio.Server:
        clock = asyncio.get_running_loop().time
        until = clock() + _BIND_SECONDS
        while True:
            try:
                return self._make()
            except RuntimeError:
                if clock() >= until:
                    raise
            await asyncio.sleep(_RETRY_SECONDS)

    def _let_finish(self, server: grpc.aio.Server) -> None:
        finishing = asyncio.create_task(server.stop(_FINISH_SECONDS))
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)


def _problem(ended: asyncio.Task[object]) -> str:
    """Name of the exception alone: its text has bytes that a client has chosen."""
    return "" if ended.cancelled() else type(ended.exception()).__name__
