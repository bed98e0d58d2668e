"""The outermost layer of every handler: no exception gets past it, and every call is accounted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleetcast.grpc.answers import answer_to
from fleetcast.grpc.call import Call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from fleetcast.grpc.accounting import Accounting
    from fleetcast.grpc.call import Context

    Unary = Callable[[Any, Call], Awaitable[bytes]]
    Stream = Callable[[Any, Call], AsyncIterator[bytes]]


class Guard:
    """Turns what handlers raise into statuses (L18)."""

    def __init__(self, accounting: Accounting) -> None:
        self._accounting = accounting

    def unary(self, route: str, handler: Unary) -> Callable[[Any, Context], Awaitable[bytes]]:
        """Guards a handler with one answer."""

        async def serve(request: object, context: Context) -> bytes:
            call = Call(context, route)
            began = self._accounting.begin()
            try:
                response = await handler(request, call)
            except BaseException as error:
                await self._fail(error, call, began)
                raise
            self._accounting.end(began, call, "OK", "", len(response))
            return response

        return serve

    def stream(self, route: str, handler: Stream) -> Callable[[Any, Context], AsyncIterator[bytes]]:
        """Guards a handler with many answers."""

        async def serve(request: object, context: Context) -> AsyncIterator[bytes]:
            call = Call(context, route)
            began = self._accounting.begin()
            sent_bytes = 0
            try:
                async for response in handler(request, call):
                    sent_bytes += len(response)
                    yield response
            except BaseException as error:
                await self._fail(error, call, began)
                raise
            self._accounting.end(began, call, "OK", "", sent_bytes)

        return serve

    async def _fail(self, error: BaseException, call: Call, began: float) -> None:
        """Ends the call with the status of the error, which raises; a cancelled one has ended."""
        if isinstance(error, Exception):
            answer = answer_to(error)
            self._accounting.end(began, call, answer.status.name, answer.details, 0)
            await call.context.abort(answer.status, answer.details, answer.trailers)
        else:
            self._accounting.end(began, call, "CANCELLED", "", 0)
