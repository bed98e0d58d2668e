"""Reader of Parquet, in frames."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl

from fleetcast.transfer.foreign_files import read_by_polars
from fleetcast.transfer.mapping import assign
from fleetcast.transfer.opening import STDIN, opened, without_compression
from fleetcast.transfer.tables import TableRows, is_scanned, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from fleetcast.transfer.mapping import ColumnOptions, Columns

    Advance = Callable[[int], object]

_ROWS = 65_536  # of a piece of `Plane.write_arrow`
_VALUES = 1 << 20  # bounds the memory of a batch if rows are wide


@dataclass(frozen=True)
class Frame:
    """Some rows of a Parquet file."""

    first: int
    rows: pl.DataFrame
    problem: None = None

    @property
    def last(self) -> int:
        """Number of the last row."""
        return self.first + self.rows.height - 1

    def until(self, row: int) -> Frame:
        """The rows up to `row`."""
        return Frame(self.first, self.rows[: max(row - self.first + 1, 0)])

    def after(self, row: int) -> Frame:
        """The rows after `row`."""
        gone = max(row - self.first + 1, 0)
        return Frame(self.first + gone, self.rows[gone:])


class ParquetReader:
    """A Parquet file: any flat table, or an export of fleetcast."""

    def __init__(self, name: str, advance: Advance, options: ColumnOptions) -> None:
        self._name = name
        self._advance = advance
        self._options = options
        self._columns: Columns | None = None

    def spans(self) -> Iterator[Frame]:
        """See `LineReader`. Input that is not a plain file goes through a temporary file."""
        if self._name == STDIN or without_compression(self._name) != self._name:
            with opened(self._name, self._advance) as file, tempfile.NamedTemporaryFile() as plain:
                shutil.copyfileobj(cast("BinaryIO", file), plain)
                plain.flush()
                yield from self._frames(plain.name)
        else:
            yield from self._frames(self._name)

    def _frames(self, path: str) -> Iterator[Frame]:
        with read_by_polars(self._name, "is not Parquet, or is damaged or cut short"):
            scan = pl.scan_parquet(path, glob=False)
            schema = scan.collect_schema()
        if not is_scanned(schema, self._options):
            self._columns = assign(self._name, schema.names(), self._options)
        size = max(1, min(_ROWS, _VALUES // max(len(schema), 1)))
        first = 1
        frames = scan.collect_batches(chunk_size=size, maintain_order=True)
        while True:
            with read_by_polars(self._name, f"is damaged: row {first} cannot be read"):
                frame = next(frames, None)
            if frame is None:
                return
            for rows in frame.iter_slices(size):
                yield Frame(first, rows)
                first += rows.height

    def batch(self, span: Frame) -> TableRows:
        """See `LineReader`."""
        numbers = range(span.first, span.last + 1)
        if self._columns is None:
            return TableRows(span.rows, numbers, None)
        return TableRows(stored(span.rows, self._columns, self._name), numbers, self._columns)
