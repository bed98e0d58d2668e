"""Readiness for writes, and `grpc.health.v1.Health`, which reports it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from fleetcast.errors import refused
from fleetcast.grpc.calls import message
from fleetcast.grpc.names import SERVICES
from fleetcast.protobuf import integer, texts
from fleetcast.surface.readiness import Dependencies, well

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from fleetcast.grpc.calls import Context
    from fleetcast.surface.readiness import Probe

_PING_SECONDS = 1.0
_WATCH_SECONDS = 5.0
_READ_SECONDS = 15.0

_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3
_OK = integer(1, 1)


class WriteReadiness:
    """Asks the dependencies again at every call, for one second at most."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._dependencies = Dependencies(probes)
        self.leaving = asyncio.Event()
        """Set when the server is about to stop."""

    async def is_ready(self) -> bool:
        """Returns true if every dependency answers in time and the server is not about to stop."""
        if self.leaving.is_set():
            return False
        asked = self._dependencies.ask()
        answers = map(asyncio.wrap_future, asked.values())
        with suppress(TimeoutError):
            async with asyncio.timeout(_PING_SECONDS):
                await asyncio.gather(*answers, return_exceptions=True)
        return all(well(asked, 0.0).values())


class Health:
    """The standard health protocol, whose empty name is the whole server, and the contract's."""

    def __init__(self, readiness: WriteReadiness) -> None:
        self._readiness = readiness

    async def health(self, _requests: object, _context: Context) -> bytes:
        """Returns OK, or raises the refusal for UNAVAILABLE. The answer's field has no meaning."""
        if not await self._readiness.is_ready():
            raise refused("telemetry_unavailable")
        return _OK

    async def check(self, _requests: object, context: Context) -> bytes:
        """Returns the status of one service now."""
        service = await _service(context)
        if service not in SERVICES:
            raise refused("unknown_service")
        return await self._status()

    async def watch(self, _requests: object, context: Context) -> AsyncIterator[bytes]:
        """Yields the status of one service, and every change of the status."""
        service = await _service(context)
        sent = b""
        while True:
            status = integer(1, _SERVICE_UNKNOWN)
            if service in SERVICES:
                status = await self._status()
            if status != sent:
                sent = status
                yield status
            if self._readiness.leaving.is_set():
                return
            await self._pause()

    async def _status(self) -> bytes:
        return integer(1, _SERVING if await self._readiness.is_ready() else _NOT_SERVING)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(_WATCH_SECONDS):
                await self._readiness.leaving.wait()
        except TimeoutError:
            return


async def _service(context: Context) -> str:
    """Returns the name of the requested service. Raises `Refused` without one good message."""
    try:
        names = texts(await message(context, _READ_SECONDS), 1)
    except ValueError:
        raise refused("invalid_input", field="payload") from None
    return names[-1] if names else ""
