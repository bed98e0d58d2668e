"""Parquet files that are longer than memory, put together from short files.

polars writes a file as a whole. Its streaming writer takes more memory on more processors and with
more columns. So some rows at a time become a small file. Its row groups are copied into the long
file unchanged, and only the positions in the footer change. Layout: the Apache Parquet format's
`parquet.thrift`, in the compact protocol of Thrift.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import polars as pl

from fleetcast.transfer.thrift import LIST, LONG, Field, decoded, encoded, list_head

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from fleetcast.transfer.thrift import Struct

_MAGIC = b"PAR1"
_GROUP_BYTES = 16 << 20  # of rows in memory
_GROUP_ROWS = 32_768  # larger groups take more memory and, for telemetry, more bytes

# Fields of the structures of the footer, by their numbers.
_FILE_ROWS, _FILE_GROUPS = 3, 4
_GROUP_COLUMNS, _GROUP_OFFSET, _GROUP_ORDINAL = 1, 5, 7
_CHUNK_OFFSET, _CHUNK_COLUMN = 2, 3
_CHUNK_INDEXES = (4, 5, 6, 7)
_INDEX_OFFSETS = (4, 6)
_COLUMN_OFFSETS = (9, 10, 11, 14)


def write_parquet(frames: Iterable[pl.DataFrame], file: BinaryIO) -> int:
    """Writes frames of one schema, at least one frame, and returns the number of their rows."""
    writer = _Writer(file)
    some: list[pl.DataFrame] = []
    rows = size = 0
    for frame in frames:
        more = int(frame.estimated_size())
        if some and (rows + frame.height > _GROUP_ROWS or size + more > _GROUP_BYTES):
            writer.write(pl.concat(some))
            some, rows, size = [], 0, 0
        some.append(frame)
        rows += frame.height
        size += more
    writer.write(pl.concat(some))
    return writer.finish()


class _Writer:
    """A file of several row groups."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = file.write(_MAGIC)
        self._rows = 0
        self._groups = bytearray()
        self._group_count = 0
        self._footer: Struct | None = None

    def write(self, frame: pl.DataFrame) -> None:
        """Appends the rows of a frame."""
        short = io.BytesIO()
        frame.write_parquet(short)
        content = short.getbuffer()
        (length,) = struct.unpack("<I", content[-8:-4])
        footer_start = len(content) - 8 - length
        footer = decoded(bytes(content[footer_start:-8]))
        groups = footer[_FILE_GROUPS].value[1]
        end = min([footer_start, *(at for group in groups for at in _indexes(group))])
        for group in groups:
            self._groups += encoded(_moved(group, self._end - len(_MAGIC)))
            self._group_count += 1
        self._rows += frame.height
        self._end += self._file.write(content[len(_MAGIC) : end])
        self._footer = self._footer or footer

    def finish(self) -> int:
        """Writes the footer and returns the number of rows."""
        assert self._footer is not None, "a file has a schema"  # noqa: S101 - `write` ran before
        groups = list_head(self._group_count) + bytes(self._groups)
        changed = {_FILE_ROWS: Field(LONG, self._rows), _FILE_GROUPS: Field(LIST, groups)}
        footer = encoded(self._footer | changed)
        self._file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)
        return self._rows


def _moved(group: Struct, by: int) -> Struct:
    """Returns the row group with all positions `by` bytes greater, as the next group of the file.

    The page indexes are left out. They hold positions as well, and readers do not need them.
    Example: a column at byte 4 of its small file, copied behind 1,000 bytes of groups, is at byte
    1,004.
    """
    chunks = []
    for chunk in group[_GROUP_COLUMNS].value[1]:
        kept = {number: of for number, of in chunk.items() if number not in _CHUNK_INDEXES}
        column = _shifted(kept[_CHUNK_COLUMN].value, _COLUMN_OFFSETS, by)
        kept[_CHUNK_COLUMN] = kept[_CHUNK_COLUMN]._replace(value=column)
        chunks.append(_shifted(kept, (_CHUNK_OFFSET,), by))
    moved = _shifted(group, (_GROUP_OFFSET,), by)
    kind, _ = group[_GROUP_COLUMNS].value
    moved[_GROUP_COLUMNS] = group[_GROUP_COLUMNS]._replace(value=(kind, chunks))
    # The ordinal has only 16 bits, and may be left out.
    moved.pop(_GROUP_ORDINAL, None)
    return moved


def _indexes(group: Struct) -> list[int]:
    """Positions of the page indexes of a row group."""
    chunks = group[_GROUP_COLUMNS].value[1]
    return [chunk[at].value for chunk in chunks for at in _INDEX_OFFSETS if at in chunk]


def _shifted(fields: Struct, numbers: tuple[int, ...], by: int) -> Struct:
    """Returns the fields, with each present field of `numbers` greater by `by`."""
    changed = dict(fields)
    for number in numbers:
        if number in changed:
            changed[number] = changed[number]._replace(value=changed[number].value + by)
    return changed
