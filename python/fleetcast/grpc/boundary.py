"""The outermost layer of every handler: no exception gets past it, and every call is accounted."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import grpc

from fleetcast.engine import Share
from fleetcast.errors import refused
from fleetcast.grpc.answers import error_status
from fleetcast.grpc.call import Call
from fleetcast.log_lines import Served
from fleetcast.surface.accounting import Accounting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from fleetcast.grpc.call import Context
    from fleetcast.grpc.connections import Connections
    from fleetcast.grpc.services import GrpcServices

    Unary = Callable[[Any, Call], Awaitable[bytes]]
    Stream = Callable[[Any, Call], AsyncIterator[bytes]]

_KEYLESS_CALLS_MAX = 512
_UNCOUNTED = nullcontext()
_CANCELLED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


class CallBoundary:
    """Makes statuses of what handlers raise, and bounds the calls that need no key."""

    def __init__(self, services: GrpcServices, connections: Connections) -> None:
        self._connections = connections
        self._accounting = Accounting("grpc", services.counters, services.access_log)
        self._keyless = Share()

    def unary(
        self, route: str, handler: Unary, *, keyless: bool = False
    ) -> Callable[[Any, Context], Awaitable[bytes]]:
        """Wraps a handler with one answer."""

        async def serve(request: object, context: Context) -> bytes:
            call = Call(context, route)
            began = self._accounting.begin()
            try:
                with self._entered(call) if keyless else _UNCOUNTED:
                    response = await handler(request, call)
            except BaseException as error:
                await self._fail(error, call, began)
                raise
            self._end(began, call, "OK", "", len(response))
            return response

        return serve

    def stream(self, route: str, handler: Stream) -> Callable[[Any, Context], AsyncIterator[bytes]]:
        """Wraps a handler with many answers, which needs no key."""

        async def serve(request: object, context: Context) -> AsyncIterator[bytes]:
            call = Call(context, route)
            began = self._accounting.begin()
            sent_bytes = 0
            try:
                with self._entered(call):
                    async for response in handler(request, call):
                        sent_bytes += len(response)
                        yield response
            except BaseException as error:
                await self._fail(error, call, began)
                raise
            self._end(began, call, "OK", "", sent_bytes)

        return serve

    @contextmanager
    def _entered(self, call: Call) -> Iterator[None]:
        """Counts a call for its address, as nothing else is known. Raises `Refused`."""
        if not self._keyless.take(call.address, 1, _KEYLESS_CALLS_MAX):
            raise refused("too_many_calls")
        try:
            yield
        finally:
            self._keyless.give(call.address, 1)

    async def _fail(self, error: BaseException, call: Call, began: float) -> None:
        """Ends the call with the status of the error, which raises; a cancelled one has ended."""
        if isinstance(error, _CANCELLED):
            self._end(began, call, "CANCELLED", "", 0)
        else:  # also a panic of the engine, which is no `Exception`
            answer = error_status(error)
            self._end(began, call, answer.status.name, answer.details, 0)
            if answer.status is grpc.StatusCode.UNAUTHENTICATED:
                self._connections.note_refused(call.client)
            await call.context.abort(answer.status, answer.details, answer.trailers)

    def _end(self, began: float, call: Call, status: str, details: str, sent_bytes: int) -> None:
        """Accounts for a call that has its status; `details` are those of an error."""
        identity = call.identity
        if identity is not None:
            self._connections.note_accepted(call.client)
        served = Served(
            call.request_id,
            "grpc",
            call.route,
            status,
            details.partition(":")[0] or None,
            None if identity is None else identity.tenant_key,
            None if identity is None else identity.key_id,
            call.client,
            time.perf_counter() - began,
            bytes_in=call.received_bytes,
            bytes_out=sent_bytes,
            process="grpc",
        )
        self._accounting.end(served, None if identity is None else identity.account_id)
