"""Bodies that come packed: never more is unpacked than a body may have."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from fleetcast.engine import unpack_snappy
from fleetcast.errors import refused

if TYPE_CHECKING:
    from fleetcast.engine import RequestBody

_GZIP = 31  # zlib's number for its head and end around a window of 32 KiB
_MEMBERS_MAX = 1024  # of a gzip body; each costs 10 us even if it is empty
_PIECE_BYTES = 65_536  # handed to zlib at once, which copies what follows the end of a member


def unpacked(body: bytes | RequestBody, coding: str | None, bytes_max: int) -> bytes | RequestBody:
    """The content of a body whose head names that coding; raises as `gunzip` does."""
    match (coding or "identity").strip().lower():
        case "gzip":
            return gunzip(body, bytes_max)
        case "snappy":
            return _unsnap(body, bytes_max)
        case _:
            return body


def gunzip(body: bytes | RequestBody, bytes_max: int) -> bytes:
    """The content, members one after the other.

    Raises `Refused`: `request_too_large` beyond `bytes_max` or 1,024 members, `invalid_input` where
    it is no gzip, or ends early.
    """
    packed = memoryview(bytes(body))
    pieces: list[bytes] = []
    at, left = 0, bytes_max
    for _ in range(_MEMBERS_MAX):
        unpacker = zlib.decompressobj(_GZIP)
        while not unpacker.eof:
            piece = packed[at : at + _PIECE_BYTES]
            if not piece:
                raise refused("invalid_input", field="payload")
            content = _decompressed(unpacker, piece, left + 1)
            at += len(piece) - len(unpacker.unused_data)
            left -= len(content)
            if left < 0:
                raise refused("request_too_large")
            pieces.append(content)
        if at == len(packed):
            return b"".join(pieces)
    raise refused("request_too_large")


def _decompressed(unpacker: zlib._Decompress, piece: memoryview, bytes_max: int) -> bytes:
    try:
        return unpacker.decompress(piece, bytes_max)
    except zlib.error as error:
        raise refused("invalid_input", field="payload") from error


def _unsnap(body: bytes | RequestBody, bytes_max: int) -> bytes:
    try:
        content = unpack_snappy(body, bytes_max)
    except ValueError as error:
        raise refused("invalid_input", field="payload") from error
    if content is None:
        raise refused("request_too_large")
    return content
