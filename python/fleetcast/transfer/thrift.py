"""Structures in Thrift's compact protocol, as the footers of Parquet files are written."""

from __future__ import annotations

from typing import Any, NamedTuple

from fleetcast.protobuf import varint

TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_LENGTH_IN_HEAD = 15


class Field(NamedTuple):
    """A type and a value: a number, bytes, a `Struct`, or for a list the type and all items.

    A list that is `bytes` was encoded before.
    """

    kind: int
    value: Any


Struct = dict[int, Field]
"""Fields by their numbers, ascending."""


def decoded(content: bytes) -> Struct:
    """Decodes the structure that `content` begins with."""
    return _StructReader(content).struct()


def encoded(fields: Struct) -> bytes:
    """Encodes a structure."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def list_head(count: int, kind: int = STRUCT) -> bytes:
    """Encodes the head of a list. Example: 3 structures have the head `3c`."""
    if count < _LENGTH_IN_HEAD:
        return bytes([count << 4 | kind])
    return bytes([_LENGTH_IN_HEAD << 4 | kind]) + varint(count)


class _StructReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else _signed(self._unsigned())
            fields[number] = Field(kind, self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - as many types as there are kinds
        if kind in {SHORT, INT, LONG}:
            return _signed(self._unsigned())
        if kind == BINARY:
            return self._bytes(self._unsigned())
        if kind == STRUCT:
            return self.struct()
        if kind == LIST:
            return self._list()
        if kind in {TRUE, FALSE}:
            return kind == TRUE
        if kind in {BYTE, DOUBLE}:
            return self._bytes(1 if kind == BYTE else 8)
        message = f"a footer has a field of type {kind}, which is not known here"
        raise ValueError(message)

    def _list(self) -> tuple[int, list[Any]]:
        head = self._byte()
        count, kind = head >> 4, head & 15
        if count == _LENGTH_IN_HEAD:
            count = self._unsigned()
        if kind in {TRUE, FALSE}:
            return kind, [self._byte() for _ in range(count)]
        return kind, [self._value(kind) for _ in range(count)]

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._content[self._at - count : self._at]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 - no further byte follows
                return value
            shift += 7


def _write_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for number, (kind, value) in fields.items():
        if 0 < number - before <= 15:  # noqa: PLR2004 - four bits
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            out += varint(_zigzag(number))
        before = number
        if kind not in {TRUE, FALSE}:
            _write(out, kind, value)
    out.append(0)


def _write(out: bytearray, kind: int, value: Any) -> None:  # noqa: ANN401 - as many as kinds
    if kind in {SHORT, INT, LONG}:
        out += varint(_zigzag(value))
    elif kind == BINARY:
        out += varint(len(value)) + value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind == LIST and not isinstance(value, bytes):
        of, items = value
        out += list_head(len(items), of)
        for item in items:
            if of in {TRUE, FALSE}:
                out.append(item)
            else:
                _write(out, of, item)
    else:
        out += value


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else ~(value << 1)
