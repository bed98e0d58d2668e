"""Whether writes would be accepted now, and `grpc.health.v1.Health`, which tells it."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fleetcast.errors import refused
from fleetcast.grpc.names import SERVICES
from fleetcast.protobuf import integer, texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from fleetcast.grpc.call import Call
    from fleetcast.surface.services import Probe

_PING_SECONDS = 1.0
_PROBE_THREADS = 4  # a probe that hangs keeps its thread; the others must not wait behind it
_WATCH_SECONDS = 5.0
_READ_SECONDS = 15.0

_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3

logger = logging.getLogger(__name__)


class WriteReadiness:
    """Asks the dependencies anew whenever it is asked, for one second at most."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._probes = probes
        self._pool = ThreadPoolExecutor(_PROBE_THREADS, thread_name_prefix="health")
        self.leaving = asyncio.Event()
        """Set when the server is about to stop."""

    async def is_ready(self) -> bool:
        """Whether every dependency answers in time. What is wrong goes to the log only."""
        if self.leaving.is_set():
            return False
        loop = asyncio.get_running_loop()
        asked = [loop.run_in_executor(self._pool, probe) for probe in self._probes.values()]
        try:
            async with asyncio.timeout(_PING_SECONDS):
                answers = await asyncio.gather(*asked, return_exceptions=True)
        except TimeoutError:
            logger.warning("a dependency does not answer in time")
            return False
        for name, answer in zip(self._probes, answers, strict=True):
            if isinstance(answer, BaseException):
                logger.warning("%s is not well: %s", name, answer)
        return not any(isinstance(answer, BaseException) for answer in answers)


class Health:
    """The standard protocol; the empty name is the whole server."""

    def __init__(self, readiness: WriteReadiness) -> None:
        self._vitals = readiness

    async def check(self, _requests: object, call: Call) -> bytes:
        """The status of one service now."""
        service = await _service(call)
        if service not in SERVICES:
            raise refused("unknown_service")
        return await self._status()

    async def watch(self, _requests: object, call: Call) -> AsyncIterator[bytes]:
        """The status of one service, and every change of it."""
        service = await _service(call)
        told = b""
        while True:
            status = integer(1, _SERVICE_UNKNOWN)
            if service in SERVICES:
                status = await self._status()
            if status != told:
                told = status
                yield status
            if self._vitals.leaving.is_set():
                return
            await self._pause()

    async def _status(self) -> bytes:
        return integer(1, _SERVING if await self._vitals.is_ready() else _NOT_SERVING)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(_WATCH_SECONDS):
                await self._vitals.leaving.wait()
        except TimeoutError:
            return


async def _service(call: Call) -> str:
    """The service that is asked for. Raises `Refused` where no message comes, or no such one."""
    try:
        names = texts(await call.message(_READ_SECONDS), 1)
    except ValueError:
        raise refused("invalid_input", field="payload") from None
    return names[-1] if names else ""
