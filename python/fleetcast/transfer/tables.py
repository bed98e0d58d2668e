"""Batches of rows of a table: CSV and Parquet, as Arrow into the engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import polars as pl

from fleetcast.engine import column_of_field
from fleetcast.errors import OperatorError
from fleetcast.transfer.batches import Rejected, words_of
from fleetcast.transfer.mapping import ColumnOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from fleetcast.engine import Plane, RecordBounds, WriteResult
    from fleetcast.transfer.batches import Cursor, Lines
    from fleetcast.transfer.mapping import Columns

_TAGS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
# Bounds of a piece of `Plane.write_arrow`, or less.
_ROWS_MAX = 65_536
_CELLS_MAX = 1 << 21
_TEXT_BYTES_MAX = 8 << 20
_MAP = pl.Map(pl.String, pl.String)


class TableRows:
    """Rows of a frame whose columns have the types that the engine stores.

    `columns` is `None` for a frame in the form of a scan. `faults` are the rows that may not be
    sent.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        numbers: Sequence[int],
        columns: Columns | None,
        faults: dict[int, str] | None = None,
    ) -> None:
        self.frame = frame
        self.first = 0
        self.last = numbers[-1] if numbers else 0
        self._numbers = numbers
        self._columns = columns
        self._faults = faults or {}

    def __len__(self) -> int:
        return self.frame.height

    def write(
        self, plane: Plane, cursor: Cursor | None, **options: Unpack[RecordBounds]
    ) -> WriteResult:
        """See `Lines`."""
        if self._faults or not len(self):
            raise Rejected(self._faults)
        frame, mapping = self.frame, None
        if frame.n_chunks("all") != [1] * frame.width:
            frame = frame.rechunk()  # of one batch, so that it is one piece
        if self._columns is not None and self._columns.has_twins:
            frame = canonical(frame, self._columns)
        elif self._columns is not None:
            if any("\0" in name for name in frame.columns):
                # Arrow ends names of columns at NUL, and names of fields may contain NUL.
                frame = frame.rename(lambda name: name.replace("\0", "%00"))
            mapping = self._columns.for_engine()
        key, before = cursor or (None, 0)
        if key is not None:
            # With it the engine stores the number of the row after the piece.
            self.first = before + self.last - len(self)
        try:
            (result,) = plane.write_arrow(
                frame,
                mapping=mapping,
                cursor=key,
                first_row=self.first,
                **options,
            )
        except ValueError as error:
            raise OperatorError(str(error)) from None
        return result

    def pieces(self) -> Iterator[TableRows]:
        """See `Lines`."""
        for start in range(0, len(self), _ROWS_MAX):
            yield from self._whole(start, min(start + _ROWS_MAX, len(self)))

    def _whole(self, start: int, stop: int) -> Iterator[TableRows]:
        """Yields parts that the engine writes as one piece each."""
        if stop - start == 1 or _is_one_piece(self.frame[start:stop]):
            yield self.part(start, stop)
        else:
            middle = (start + stop) // 2
            yield from self._whole(start, middle)
            yield from self._whole(middle, stop)

    def part(self, start: int, stop: int) -> TableRows:
        """See `Lines`."""
        stop = min(stop, len(self))
        faults = {
            index - start: fault for index, fault in self._faults.items() if start <= index < stop
        }
        part = TableRows(self.frame[start:stop], self._numbers[start:stop], self._columns, faults)
        part.last = self.last if stop == len(self) else part.last
        return part

    def without(self, indices: Collection[int]) -> TableRows:
        """See `Lines`."""
        kept = [index for index in range(len(self)) if index not in indices]
        rest = TableRows(self.frame[kept], [self._numbers[index] for index in kept], self._columns)
        rest.last = self.last
        return rest

    def reason(self, index: int, fault: Mapping[str, Any]) -> str:  # noqa: ARG002 - as for lines
        """See `Lines`."""
        return words_of(fault)

    def line(self, index: int) -> int:
        """See `Lines`."""
        return self._numbers[index]

    def text(self, index: int) -> str:
        """See `Lines`."""
        row = self.frame.row(index, named=True)
        cells = {name: value for name, value in row.items() if value is not None}
        return json.dumps(cells, ensure_ascii=False, default=str)

    def has_fields(self, index: int) -> bool:
        """See `Lines`."""
        row = self.frame.row(index, named=True)
        return any(row[column] is not None for column in self._fields)

    @property
    def _fields(self) -> Iterable[str]:
        return self.frame.columns[3:] if self._columns is None else self._columns.fields


RecordBatch: TypeAlias = "Lines | TableRows"
"""Some records of a file, in order."""


def _is_one_piece(frame: pl.DataFrame) -> bool:
    texts = frame.select(pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String))
    sizes = texts.select(pl.all().str.len_bytes().sum())
    text_bytes = sum(sizes.row(0)) if texts.width else 0
    return frame.height * frame.width <= _CELLS_MAX and text_bytes <= _TEXT_BYTES_MAX


def is_scanned(schema: pl.Schema, options: ColumnOptions) -> bool:
    """Returns true for the columns of an export."""
    return schema.get("tags") in {_MAP, _TAGS} and options == ColumnOptions()


def stored(frame: pl.DataFrame, columns: Columns, file: str) -> pl.DataFrame:
    """Returns a frame with its fields, tags and measurements as the engine stores them.

    NaN becomes no value, and dates become ISO 8601. Raises `OperatorError` for a column that no
    field, tag or measurement can hold. Example: a column of lists.
    """
    made = [_as_field(frame[column], file) for column in columns.fields]
    labels = list(columns.tags.values())
    if columns.measurement is None:
        labels.append(columns.measurement_column)
    made += [_as_label(frame[label], file) for label in labels]
    changed = [column for column in made if column is not None]
    return frame.with_columns(changed) if changed else frame


def _as_field(column: pl.Series, file: str) -> pl.Series | None:
    """Returns the column as a field, or `None` if the column is a field already."""
    dtype = column.dtype
    if dtype == pl.Float64:
        # This type is checked first: it is the usual type, and a change copies the column.
        return column.fill_nan(None) if column.is_nan().any() else None
    if dtype in {pl.Boolean, pl.String}:
        return None
    if dtype.is_numeric():
        return column.cast(pl.Float64).fill_nan(None)
    if dtype == pl.Time:
        return column.dt.to_string("%H:%M:%S%.f")  # a cast drops the fraction
    if dtype in {pl.Date, pl.Datetime} or isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if dtype == pl.Null:
        return column.cast(pl.Float64)
    message = f"{file}: column {column.name} has {dtype}, which no field can hold"
    raise OperatorError(message)


def _as_label(column: pl.Series, file: str) -> pl.Series | None:
    """Returns the column as a label, or `None` if the column is a label already.

    A label is a tag or a measurement.
    """
    dtype = column.dtype
    if dtype == pl.String:
        return None
    if dtype.is_nested() or dtype in {pl.Duration, pl.Object}:
        message = f"{file}: column {column.name} has {dtype}, which no tag or measurement can hold"
        raise OperatorError(message)
    if dtype == pl.Time:
        return column.dt.to_string("%H:%M:%S%.f")
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        message = f"{file}: column {column.name} has bytes that are not UTF-8"
        raise OperatorError(message) from None


def canonical(frame: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Returns the frame in the form of a scan, which has a column for each type of a field."""
    entries = [
        pl.struct(pl.lit(tag).alias("key"), pl.col(column).alias("value"))
        for tag, column in sorted(columns.tags.items())
    ]
    tags = pl.concat_list(entries) if entries else pl.lit([], _TAGS)
    value = pl.element().struct.field("value")
    fields = [
        pl.col(column).alias(column_of_field(name, kind or "float"))
        for column, (name, kind) in columns.fields.items()
    ]
    return frame.select(
        # A text that is no time becomes null, and the engine reports a row without a time.
        pl.col(columns.time)
        .cast(pl.String)
        .str.to_datetime(time_unit="ns", time_zone="UTC", strict=False)
        .alias("time"),
        pl.col(columns.measurement_column).alias("measurement"),
        tags.list.filter(value.is_not_null()).alias("tags"),
        *fields,
    )
