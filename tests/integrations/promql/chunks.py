"""Reads the frames of a streamed remote read, as Prometheus defines `STREAMED_XOR_CHUNKS`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Labels = tuple[tuple[str, str], ...]
CHUNK_SAMPLES = 120
# Bits of a change of the distance in time, by the ones before it.
CHANGES = (0, 14, 17, 20, 64)


def series(body: bytes) -> dict[Labels, list[tuple[int, bytes]]]:
    """The samples of each series: times in milliseconds, and the bits of the values."""
    found: dict[Labels, list[tuple[int, bytes]]] = {}
    while body:
        length, body = varint(body)
        message, body = body[4 : 4 + length], body[4 + length :]
        for content in delimited(message, 1):
            pairs = [
                (next(delimited(label, 1)).decode(), next(delimited(label, 2)).decode())
                for label in delimited(content, 1)
            ]
            samples = found.setdefault(tuple(sorted(pairs)), [])
            for chunk in delimited(content, 2):
                samples += decoded(next(delimited(chunk, 4)))
    return found


def varint(data: bytes) -> tuple[int, bytes]:
    value = 0
    for at, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return value, data[at + 1 :]
    raise ValueError("a number that does not end")


def delimited(message: bytes, wanted: int) -> Iterator[bytes]:
    """The contents of a field of bytes."""
    while message:
        tag, message = varint(message)
        length, message = varint(message)
        if tag & 7 == 0:
            continue  # the number was read as a length
        if tag >> 3 == wanted:
            yield message[:length]
        message = message[length:]


class Bits:
    """Bits of a chunk, the first one first."""

    def __init__(self, chunk: bytes) -> None:
        self._bits = iter("".join(f"{byte:08b}" for byte in chunk))

    def number(self, count: int) -> int:
        return int("".join(next(self._bits) for _ in range(count)) or "0", 2)

    def varint(self) -> int:
        group, value, at = 0x80, 0, 0
        while group & 0x80:
            group = self.number(8)
            value |= (group & 0x7F) << 7 * at
            at += 1
        return value

    def change(self) -> int:
        """A change of the distance between two times."""
        ones = 0
        while ones < 4 and self.number(1):
            ones += 1
        change = self.number(CHANGES[ones])
        half = 1 << CHANGES[ones] >> 1
        return change - 2 * half if change > half > 0 else change


def decoded(chunk: bytes) -> Iterator[tuple[int, bytes]]:
    """The samples of a chunk."""
    bits = Bits(chunk)
    time_ms = distance_ms = value = leading = length = 0
    for at in range(bits.number(16)):
        if at == 0:
            zigzag = bits.varint()
            time_ms, value = zigzag >> 1 ^ -(zigzag & 1), bits.number(64)
        else:
            distance_ms = bits.varint() if at == 1 else distance_ms + bits.change()
            time_ms += distance_ms
            if bits.number(1):
                if bits.number(1):
                    leading, length = bits.number(5), bits.number(6) or 64
                value ^= bits.number(length) << 64 - leading - length
        yield time_ms, struct.pack(">Q", value)
