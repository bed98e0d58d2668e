"""Messages of Prometheus and OpenTelemetry, as their definitions number the fields."""

from __future__ import annotations

import struct

_LITERAL_MAX = 60


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(at: int, value: int) -> bytes:
    return varint(at << 3) + varint(value)


def double(at: int, value: float) -> bytes:
    return varint(at << 3 | 1) + struct.pack("<d", value)


def fixed(at: int, value: int) -> bytes:
    return varint(at << 3 | 1) + struct.pack("<Q", value)


def time_series(labels: dict[str, str], samples: list[tuple[float, int]]) -> bytes:
    """`WriteRequest.timeseries`, samples with times in milliseconds."""
    pairs = b"".join(field(1, field(1, name) + field(2, text)) for name, text in labels.items())
    values = b"".join(field(2, double(1, value) + number(2, time)) for value, time in samples)
    return field(1, pairs + values)


def snappy(content: bytes) -> bytes:
    """A block of literals."""
    out = varint(len(content))
    for start in range(0, len(content), _LITERAL_MAX):
        piece = content[start : start + _LITERAL_MAX]
        out += bytes([(len(piece) - 1) << 2]) + piece
    return out


def unsnapped(block: bytes) -> bytes:
    """The content of a block of snappy."""
    at = next(at for at, byte in enumerate(block) if byte < 0x80) + 1  # behind the length
    out = bytearray()
    while at < len(block):
        tag, at = block[at], at + 1
        match tag & 3:
            case 0:
                more = max(0, (tag >> 2) - 59)
                length = int.from_bytes(block[at : at + more], "little") if more else tag >> 2
                at += more
                out += block[at : at + length + 1]
                at += length + 1
                continue
            case 1:
                length, bytes_of_offset, high = (tag >> 2 & 7) + 4, 1, tag >> 5 << 8
            case 2:
                length, bytes_of_offset, high = (tag >> 2) + 1, 2, 0
            case _:
                length, bytes_of_offset, high = (tag >> 2) + 1, 4, 0
        offset = high | int.from_bytes(block[at : at + bytes_of_offset], "little")
        at += bytes_of_offset
        for _ in range(length):
            out.append(out[-offset])
    return bytes(out)


def attributes(at: int, texts: dict[str, str]) -> bytes:
    return b"".join(field(at, field(1, name) + field(2, field(1, t))) for name, t in texts.items())


def gauge(name: str, points: list[tuple[dict[str, str], int, float]]) -> bytes:
    """A metric; points are attributes, a time in nanoseconds and a value."""
    data = b"".join(
        field(1, attributes(7, texts) + fixed(3, time) + double(4, value))
        for texts, time, value in points
    )
    return field(2, field(1, name) + field(5, data))


def export(resource: dict[str, str], metrics: bytes) -> bytes:
    """An `ExportMetricsServiceRequest` of one resource and one scope."""
    return field(1, field(1, attributes(1, resource)) + field(2, metrics))
