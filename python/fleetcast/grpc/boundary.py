"""The outermost layer of every handler: no exception gets past it, and every call is accounted."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fleetcast.errors import refused
from fleetcast.grpc.answers import error_status
from fleetcast.grpc.call import Call
from fleetcast.surface.shares import Share

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from fleetcast.grpc.accounting import Accounting
    from fleetcast.grpc.call import Context

    Unary = Callable[[Any, Call], Awaitable[bytes]]
    Stream = Callable[[Any, Call], AsyncIterator[bytes]]

_KEYLESS_CALLS_MAX = 512
_CANCELLED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


class CallBoundary:
    """FairQueue what handlers raise into statuses, and bounds the calls that need no key."""

    def __init__(self, accounting: Accounting) -> None:
        self._accounting = accounting
        self._keyless = Share()

    def unary(
        self, route: str, handler: Unary, *, keyless: bool = False
    ) -> Callable[[Any, Context], Awaitable[bytes]]:
        """Wraps a handler with one answer."""

        async def serve(request: object, context: Context) -> bytes:
            call = Call(context, route)
            began = self._accounting.begin()
            try:
                with self._entered(call, keyless=keyless):
                    response = await handler(request, call)
            except BaseException as error:
                await self._fail(error, call, began)
                raise
            self._accounting.end(began, call, "OK", "", len(response))
            return response

        return serve

    def stream(self, route: str, handler: Stream) -> Callable[[Any, Context], AsyncIterator[bytes]]:
        """Wraps a handler with many answers, which needs no key."""

        async def serve(request: object, context: Context) -> AsyncIterator[bytes]:
            call = Call(context, route)
            began = self._accounting.begin()
            sent_bytes = 0
            try:
                with self._entered(call, keyless=True):
                    async for response in handler(request, call):
                        sent_bytes += len(response)
                        yield response
            except BaseException as error:
                await self._fail(error, call, began)
                raise
            self._accounting.end(began, call, "OK", "", sent_bytes)

        return serve

    @contextmanager
    def _entered(self, call: Call, *, keyless: bool) -> Iterator[None]:
        """Counts a call for its address, as nothing else is known. Raises `Refused`."""
        if not keyless:
            yield
            return
        if not self._keyless.take(call.address, 1, _KEYLESS_CALLS_MAX):
            raise refused("too_many_calls")
        try:
            yield
        finally:
            self._keyless.give(call.address, 1)

    async def _fail(self, error: BaseException, call: Call, began: float) -> None:
        """Ends the call with the status of the error, which raises; a cancelled one has ended."""
        if isinstance(error, _CANCELLED):
            self._accounting.end(began, call, "CANCELLED", "", 0)
        else:  # also a panic of the engine, which is no `Exception`
            answer = error_status(error)
            self._accounting.end(began, call, answer.status.name, answer.details, 0)
            await call.context.abort(answer.status, answer.details, answer.trailers)
