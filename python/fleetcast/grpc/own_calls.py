"""Calls of the server to itself: whether calls come in through socket, TLS, library and loop.

The call has a path that nobody serves, so it reaches no handler and no log. It is made of HTTP/2
frames (RFC 9113) by hand, because a client of the library would share the threads that it is to
prove.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_SECONDS = 2.0
_ANSWER_SECONDS = 30.0
_FRAME_HEAD_BYTES = 9
_HEADERS = 1
_SETTINGS = 4
_END_OF_STREAM_AND_HEADERS = 5
_FIELDS = {
    b":method": b"POST",
    b":scheme": b"https",
    b":path": b"/fleetcast.OwnCall",
    b":authority": b"localhost",
    b"content-type": b"application/grpc",
    b"te": b"trailers",
}


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def _field(name: bytes, value: bytes) -> bytes:
    """A field that no table keeps (RFC 7541, 6.2.2), without Huffman coding."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


_CALL = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + _frame(_SETTINGS, 0, 0, b"")
    + _frame(
        _HEADERS, _END_OF_STREAM_AND_HEADERS, 1, b"".join(map(_field, _FIELDS, _FIELDS.values()))
    )
)


async def prove(address: str | None, lives: Callable[[], None]) -> None:
    """Calls `lives` every other second while own calls to `address` are answered.

    It goes on until it is cancelled. Without an address, and until a call is answered for the first
    time, `lives` is called all the same: a firewall may keep the host from calling itself.
    """
    # It sends no secret, and what answers is only to be the server.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    was_answered = False
    while True:
        is_answered = address is not None and await _is_answered(address, context)
        was_answered |= is_answered
        if is_answered or not was_answered:
            lives()
        await asyncio.sleep(_PAUSE_SECONDS)


async def _is_answered(address: str, context: ssl.SSLContext) -> bool:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host.strip("[]"), port, ssl=context)
            try:
                writer.write(_CALL)
                while (head := await reader.readexactly(_FRAME_HEAD_BYTES))[3] != _HEADERS:
                    await reader.readexactly(int.from_bytes(head[:3], "big"))
            finally:
                writer.close()
    except (OSError, EOFError):  # also `TimeoutError`
        return False
    return True
