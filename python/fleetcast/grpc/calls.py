"""Calls that the front hands on: reading their single message, and the status of an error."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Never

import grpc
import grpc.aio

from fleetcast.errors import Refused, refused
from fleetcast.surface.error_codes import ERROR_CODES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Context = grpc.aio.ServicerContext[bytes, bytes]
    Unary = Callable[[Any, Context], Awaitable[bytes]]
    Stream = Callable[[Any, Context], AsyncIterator[bytes]]

logger = logging.getLogger(__name__)


def unary(handler: Unary) -> Unary:
    """Wraps a handler with one answer, so that errors become statuses."""

    async def serve(requests: object, context: Context) -> bytes:
        try:
            return await handler(requests, context)
        except Exception as error:  # noqa: BLE001 - the text of no exception is for clients
            await _abort(context, error)

    return serve


def stream(handler: Stream) -> Stream:
    """Wraps a handler with many answers, so that errors become statuses."""

    async def serve(requests: object, context: Context) -> AsyncIterator[bytes]:
        try:
            async for answer in handler(requests, context):
                yield answer
        except Exception as error:  # noqa: BLE001 - as above
            await _abort(context, error)

    return serve


async def message(context: Context, seconds: float) -> bytes:
    """Returns the single message of a call.

    Raises `Refused` if no message comes in time, or if a second message comes.
    """
    try:
        async with asyncio.timeout(seconds):
            first: object = await context.read()
            # The library keeps quiet about a second message unless the handler reads on.
            if isinstance(first, bytes):
                end: object = await context.read()
                if end is grpc.aio.EOF:
                    return first
    except TimeoutError:
        raise refused("read_deadline_exceeded") from None
    raise refused("invalid_input", field="payload")


async def _abort(context: Context, error: Exception) -> Never:
    """Ends a call with the status of an error. The front adds when the client may retry."""
    code, details = "internal", "internal"
    if isinstance(error, Refused):
        code, fields = error.args
        field = fields.get("field")
        details = code if field is None else f"{code}:{field}"
    else:
        logger.error("unexpected error", exc_info=error)
    await context.abort(grpc.StatusCode[ERROR_CODES[code].grpc], details)
