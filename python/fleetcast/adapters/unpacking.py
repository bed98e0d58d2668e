"""Bodies that come packed: never more is unpacked than a body may have."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from fleetcast.engine import unpack_snappy
from fleetcast.errors import refused

if TYPE_CHECKING:
    from fleetcast.engine import RequestBody

_GZIP = 31  # zlib's number for its head and end around a window of 32 KiB


def unpacked(body: bytes | RequestBody, coding: str, bytes_max: int) -> bytes | RequestBody:
    """The content of a body of that coding; raises as `gunzip` does."""
    match coding:
        case "gzip":
            return gunzip(body, bytes_max)
        case "snappy":
            return _unsnap(body, bytes_max)
        case _:
            return body


def gunzip(body: bytes | RequestBody, bytes_max: int) -> bytes:
    """The content, members one after the other.

    Raises `Refused`: `request_too_large` beyond `bytes_max`, `invalid_input` where it is no gzip,
    or ends early.
    """
    rest, left = bytes(body), bytes_max
    pieces: list[bytes] = []
    while rest or not pieces:
        unpacker = zlib.decompressobj(_GZIP)
        try:
            piece = unpacker.decompress(rest, left + 1)
        except zlib.error as error:
            raise refused("invalid_input", field="payload") from error
        left -= len(piece)
        if left < 0:
            raise refused("request_too_large")
        if not unpacker.eof:
            raise refused("invalid_input", field="payload")
        pieces.append(piece)
        rest = unpacker.unused_data
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unsnap(body: bytes | RequestBody, bytes_max: int) -> bytes:
    try:
        content = unpack_snappy(body, bytes_max)
    except ValueError as error:
        raise refused("invalid_input", field="payload") from error
    if content is None:
        raise refused("request_too_large")
    return content
