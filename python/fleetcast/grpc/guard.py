"""The outermost layer of every handler: no exception gets past it, and every call is told of."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import grpc.aio

from fleetcast.grpc.answers import answer_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from fleetcast.grpc.services import Observer

    Context = grpc.aio.ServicerContext[bytes, bytes]
    Unary = Callable[[Any, Context], Awaitable[bytes]]
    Stream = Callable[[Any, Context], AsyncIterator[bytes]]


class Guard:
    """Turns what handlers raise into statuses (L18)."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def unary(self, method: str, handler: Unary) -> Unary:
        """Guards a handler with one answer."""

        async def serve(request: object, context: Context) -> bytes:
            started = time.monotonic()
            try:
                response = await handler(request, context)
            except asyncio.CancelledError:
                self._tell(method, "CANCELLED", "", started)
                raise
            except Exception as error:  # noqa: BLE001  this is where all of them end
                await self._abort(method, error, context, started)
            self._tell(method, "OK", "", started)
            return response

        return serve

    def stream(self, method: str, handler: Stream) -> Stream:
        """Guards a handler with many answers."""

        async def serve(request: object, context: Context) -> AsyncIterator[bytes]:
            started = time.monotonic()
            try:
                async for response in handler(request, context):
                    yield response
            except Exception as error:  # noqa: BLE001  see above
                await self._abort(method, error, context, started)

        return serve

    async def _abort(self, method: str, error: Exception, context: Context, started: float) -> None:
        if isinstance(error, grpc.aio.AbortError):
            raise error
        answer = answer_to(error)
        self._tell(method, answer.status.name, answer.details, started)
        await context.abort(answer.status, answer.details, answer.trailers)

    def _tell(self, method: str, status: str, details: str, started: float) -> None:
        self._observer.answered(method, status, details, time.monotonic() - started)
