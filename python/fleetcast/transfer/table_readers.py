"""Readers of tables: CSV in pieces of its text, Parquet in frames."""

from __future__ import annotations

import csv
import io
import re
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl

from fleetcast.errors import OperatorError
from fleetcast.transfer.mapping import assign
from fleetcast.transfer.opening import STDIN, opened, without_compression
from fleetcast.transfer.pieces import Piece, counted_in, pieces
from fleetcast.transfer.tables import TableRows, cell_faults, is_scanned, stored, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from fleetcast.transfer.mapping import ColumnOptions, Columns, Kind

    Advance = Callable[[int], object]
    Kinds = Callable[[str], dict[str, Kind]]

_QUOTED = re.compile(rb'"[^"]*"')
_BOM = b"\xef\xbb\xbf"
_ROWS = 65_536  # of a piece of `Plane.write_arrow`
_VALUES = 1 << 20  # bounds the memory of a batch where rows are wide


class CsvReader:
    """Comma-separated values below a header."""

    def __init__(
        self,
        name: str,
        advance: Advance,
        options: ColumnOptions,
        known: Callable[[str | None], dict[str, Kind]],
    ) -> None:
        """`known` gives the types of the stored fields of a measurement, or of all."""
        self._name = name
        self._advance = advance
        self._options = options
        self._known = known
        self._header: list[str] = []
        self._columns: Columns | None = None
        self._kinds: dict[str, Kind] = {}

    def spans(self) -> Iterator[Piece]:
        """See `Reader`; the header, which must be in the first piece, is none of them."""
        with opened(self._name, self._advance) as file:
            for piece in pieces(file, counted_in):
                if self._columns is not None:
                    yield piece
                    continue
                lines = self._read_header(piece)
                rest = piece.after(lines)
                if rest.lines:
                    yield rest
        if self._columns is None:
            assign(self._name, [], self._options)  # says what is missing

    def batch(self, span: Piece) -> TableRows:
        """See `Reader`."""
        columns = self._columns
        assert columns is not None  # noqa: S101  `spans` came before
        faults: dict[int, str] = {}
        texts = _frame(span, self._header)
        numbers: Sequence[int] = range(span.first, span.last + 1)
        if texts is None:
            texts, numbers, faults = _row_by_row(span, self._header)
        elif texts.height != span.lines:
            numbers = _row_by_row(span, self._header)[1]
        frame = typed(texts, columns, self._kinds)
        faults = cell_faults(texts, frame, columns, self._kinds) | faults
        rows = TableRows(frame, numbers, columns, faults)
        rows.last = span.last
        return rows

    def _read_header(self, piece: Piece) -> int:
        """Takes the header up and gives the number of its lines. Raises `OperatorError`."""
        text = piece.text.removeprefix(_BOM)
        try:
            rows = csv.reader(_lines(text))
            self._header = next(rows, [])
        except csv.Error as error:
            message = f"{self._name}: its header cannot be read: {error}"
            raise OperatorError(message) from None
        self._columns = assign(self._name, self._header, self._options)
        known = self._known(self._columns.measurement)
        for column, (name, kind) in self._columns.fields.items():
            stored_kind = kind or known.get(name)
            if stored_kind is not None:
                self._kinds[column] = stored_kind
        return rows.line_num


def _lines(text: bytes) -> Iterator[str]:
    """Lines as pieces count them: no carriage return ends one."""
    for line in io.BytesIO(text):
        yield line.decode(errors="surrogateescape")


def _frame(piece: Piece, header: Sequence[str]) -> pl.DataFrame | None:
    """The cells of a piece; `None` where a row has too few or too many, or is no text."""
    text = _QUOTED.sub(b"", piece.text) if b'"' in piece.text else piece.text
    rows = text.count(b"\n") + (not text.endswith(b"\n"))
    if b'"' in text or text.count(b",") != rows * (len(header) - 1):
        return None
    try:
        frame = pl.read_csv(
            piece.text,
            has_header=False,
            schema=dict.fromkeys(header, pl.String),
            infer_schema=False,
        )
    except pl.exceptions.PolarsError:
        return None
    return frame if frame.height == rows else None


def _row_by_row(
    piece: Piece, header: Sequence[str]
) -> tuple[pl.DataFrame, list[int], dict[int, str]]:
    """The rows of a piece with the line on which each begins, and what is wrong with some."""
    rows = csv.reader(_lines(piece.text))
    found: list[list[str | None]] = []
    numbers: list[int] = []
    faults: dict[int, str] = {}
    while True:
        number = piece.first + rows.line_num
        try:
            row = next(rows, None)
        except csv.Error as error:
            row, faults[len(found)] = [], str(error)
        if row is None:
            break
        if not row and len(found) not in faults:
            continue
        if row and len(row) != len(header):
            faults[len(found)] = f"has {len(row)} cells, the header has {len(header)}"
        elif any("\udc80" <= char <= "\udcff" for cell in row for char in cell):
            faults[len(found)] = "is not UTF-8"
        sound = len(found) not in faults
        found.append([cell or None for cell in row] if sound else [None] * len(header))
        numbers.append(number)
    frame = pl.DataFrame(found, schema=dict.fromkeys(header, pl.String), orient="row")
    return frame, numbers, faults


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
    """A Parquet file: any flat table, or one that was exported."""

    def __init__(self, name: str, advance: Advance, options: ColumnOptions) -> None:
        self._name = name
        self._advance = advance
        self._options = options
        self._columns: Columns | None = None

    def spans(self) -> Iterator[Frame]:
        """See `Reader`. What is not a plain file goes through a temporary one."""
        if self._name == STDIN or without_compression(self._name) != self._name:
            with opened(self._name, self._advance) as file, tempfile.NamedTemporaryFile() as plain:
                shutil.copyfileobj(cast("BinaryIO", file), plain)
                plain.flush()
                yield from self._frames(plain.name)
        else:
            yield from self._frames(self._name)

    def _frames(self, path: str) -> Iterator[Frame]:
        try:
            scan = pl.scan_parquet(path, glob=False)
            schema = scan.collect_schema()
        except pl.exceptions.PolarsError as error:
            message = f"{self._name}: is not Parquet: {error}"
            raise OperatorError(message) from None
        if not is_scanned(schema, self._options):
            self._columns = assign(self._name, schema.names(), self._options)
        size = max(1, min(_ROWS, _VALUES // max(len(schema), 1)))
        first = 1
        for frame in scan.collect_batches(chunk_size=size, maintain_order=True):
            for rows in frame.iter_slices(size):
                yield Frame(first, rows)
                first += rows.height

    def batch(self, span: Frame) -> TableRows:
        """See `Reader`."""
        numbers = range(span.first, span.last + 1)
        if self._columns is None:
            return TableRows(span.rows, numbers, None)
        return TableRows(stored(span.rows, self._columns, self._name), numbers, self._columns)
