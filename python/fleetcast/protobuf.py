"""Protobuf's wire format, for the small messages that Python reads and writes itself.

The engine decodes telemetry. Python handles acknowledgments, health, reflection, and the records of
a request, one by one. Each message has few fields, so no process that serves loads a runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_LAST_BYTE_MAX = 0x7F
_VARINT_BITS_MAX = 64
_SIXTY_FOUR_BITS = (1 << 64) - 1


def varint(value: int) -> bytes:
    """An integer as a varint; a negative integer in two's complement of 64 bits.

    Example: 300 is the two bytes `ac 02`.
    """
    value &= _SIXTY_FOUR_BITS
    out = bytearray()
    while value > _LAST_BYTE_MAX:
        out.append(value & _LAST_BYTE_MAX | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A field of an integer, a boolean or an enumeration, also if it is zero."""
    return varint(number << 3 | _VARINT) + varint(value)


def delimited(number: int, content: bytes | str) -> bytes:
    """A field of a string, of bytes, or of a message."""
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | _DELIMITED) + varint(len(data)) + data


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields numbers and values in the order in which they were sent; fixed-width values as bytes.

    Raises `ValueError` if the bytes are not a message.
    """
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if kind == _DELIMITED:
            length, at = _read_varint(message, at)
        elif kind in {_FIXED64, _FIXED32}:
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(kind)
        if at + length > len(message):
            raise ValueError(length)
        yield number, message[at : at + length]
        at += length


def integers(message: bytes) -> dict[int, int]:
    """The last value of each integer field, signed, by field number. Raises `ValueError`."""
    return {at: signed(value) for at, value in fields(message) if isinstance(value, int)}


def signed(value: int) -> int:
    """Reads an integer that was sent in two's complement of 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def texts(message: bytes, number: int) -> list[str]:
    """All values of a repeated string. Raises `ValueError` if the bytes are not a message."""
    return [
        value.decode() for at, value in fields(message) if at == number and isinstance(value, bytes)
    ]


def messages(message: bytes, number: int) -> list[bytes]:
    """All values of a repeated message or of bytes. Raises `ValueError`."""
    return [value for at, value in fields(message) if at == number and isinstance(value, bytes)]


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _VARINT_BITS_MAX + 6, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & _LAST_BYTE_MAX) << shift
        if byte <= _LAST_BYTE_MAX:
            return value & _SIXTY_FOUR_BITS, at
    raise ValueError(at)
