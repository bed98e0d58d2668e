"""Batches of rows of a table: CSV and Parquet, as Arrow into the engine."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Unpack

import polars as pl

from fleetcast.engine import format_time
from fleetcast.errors import OperatorError
from fleetcast.transfer.batches import Rejected
from fleetcast.transfer.mapping import ColumnOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from fleetcast.engine import Plane, WriteResult
    from fleetcast.transfer.batches import WriteOptions
    from fleetcast.transfer.mapping import Columns, Kind

_TAGS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))


class TableRows:
    """TableRows of a frame whose columns have the types that the engine stores.

    `columns` is `None` for a frame as a scan gives it. `faults` are the rows that may not be sent.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        numbers: Sequence[int],
        columns: Columns | None,
        faults: dict[int, str] | None = None,
    ) -> None:
        self.frame = frame
        self.last = numbers[-1] if numbers else 0
        self._numbers = numbers
        self._columns = columns
        self._faults = faults or {}

    def __len__(self) -> int:
        return self.frame.height

    def write(self, plane: Plane, **options: Unpack[WriteOptions]) -> WriteResult:
        """See `RecordBatch`."""
        if self._faults:
            raise Rejected(self._faults)
        records = [_record(row, self._columns) for row in self.frame.iter_rows(named=True)]
        body = json.dumps(records, ensure_ascii=False).encode()
        return plane.write_json(body, batch_records_max=len(self), **options)

    def part(self, start: int, stop: int) -> TableRows:
        """See `RecordBatch`."""
        stop = min(stop, len(self))
        part = TableRows(self.frame[start:stop], self._numbers[start:stop], self._columns)
        part.last = self.last if stop == len(self) else part.last
        return part

    def without(self, indices: Collection[int]) -> TableRows:
        """See `RecordBatch`."""
        kept = [index for index in range(len(self)) if index not in indices]
        rest = TableRows(self.frame[kept], [self._numbers[index] for index in kept], self._columns)
        rest.last = self.last
        return rest

    def line(self, index: int) -> int:
        """See `RecordBatch`."""
        return self._numbers[index]

    def text(self, index: int) -> str:
        """See `RecordBatch`."""
        row = self.frame.row(index, named=True)
        cells = {name: value for name, value in row.items() if value is not None}
        return json.dumps(cells, ensure_ascii=False, default=str)

    def has_fields(self, index: int) -> bool:
        """See `RecordBatch`."""
        row = self.frame.row(index, named=True)
        return any(row[column] is not None for column in self._fields)

    @property
    def _fields(self) -> Iterable[str]:
        return self.frame.columns[3:] if self._columns is None else self._columns.fields


def _record(row: dict[str, object], columns: Columns | None) -> dict[str, object]:
    if columns is None:
        message = "an export cannot be imported yet"
        raise OperatorError(message)
    time = row[columns.time]
    if isinstance(time, datetime):
        time = time.isoformat()
    elif isinstance(time, int) and columns.time_unit is not None:
        time = format_time(
            time * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[columns.time_unit]
        )
    elif isinstance(time, str) and columns.time_unit is not None and time.isdecimal():
        time = format_time(
            int(time) * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[columns.time_unit]
        )
    measurement = columns.measurement
    return {
        "time": time or "",
        "measurement": row[columns.measurement_column] if measurement is None else measurement,
        "tags": {
            **{tag: row[column] for tag, column in columns.tags.items() if row[column] is not None},
            **columns.fixed_tags,
        },
        "fields": {
            name: row[column]
            for column, (name, _) in columns.fields.items()
            if row[column] is not None
        },
    }


def typed(frame: pl.DataFrame, columns: Columns, kinds: dict[str, Kind]) -> pl.DataFrame:
    """A frame of texts with the fields in their types; cells that are of another are null.

    A column has the type that `kinds` knows, else that of its first cell, which becomes known.
    """
    made = []
    for column in columns.fields:
        cells = frame[column]
        if column not in kinds:
            first = cells.drop_nulls().head(1).to_list()
            if not first:
                made.append(pl.lit(None, pl.Float64).alias(column))
                continue
            kinds[column] = _kind(first[0])
        made.append(_cast(pl.col(column), kinds[column]))
    return frame.with_columns(made)


def cell_faults(
    texts: pl.DataFrame, frame: pl.DataFrame, columns: Columns, kinds: dict[str, Kind]
) -> dict[int, str]:
    """TableRows with a cell of another type than its column, or a number out of range."""
    faults: dict[int, str] = {}
    for column, (name, _) in columns.fields.items():
        kind = kinds.get(column)
        if kind is None or kind == "text":
            continue
        cells = texts[column]
        wrong = cells.is_not_null() & frame[column].is_null()
        if kind == "float":
            wrong &= cells.str.to_lowercase() != "nan"
            for index in frame[column].is_infinite().fill_null(value=False).arg_true():
                faults.setdefault(index, f"has a number out of range in {name}")
        for index in wrong.arg_true():
            faults.setdefault(index, f"has no {_WORDS[kind]} in {name}: {cells[index]!r}")
    return faults


_WORDS: dict[Kind, str] = {"float": "number", "bool": "true or false"}


def _kind(cell: str) -> Kind:
    if cell.lower() in {"true", "false"}:
        return "bool"
    number = pl.Series([cell]).cast(pl.Float64, strict=False)
    return "text" if number.is_null().any() else "float"


def _cast(column: pl.Expr, kind: Kind) -> pl.Expr:
    if kind == "text":
        return column
    if kind == "bool":
        return column.str.to_lowercase().replace_strict(
            {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
        )
    return column.cast(pl.Float64, strict=False).fill_nan(None)


def is_scanned(schema: pl.Schema, options: ColumnOptions) -> bool:
    """True for the columns of an export."""
    return schema.get("tags") == _TAGS and options == ColumnOptions()


def stored(frame: pl.DataFrame, columns: Columns, file: str) -> pl.DataFrame:
    """A frame of any types with its fields, tags and measurements as the engine stores them.

    NaN is no value, and dates are ISO 8601. Raises `OperatorError` for a column of lists or
    other things that no field can hold.
    """
    made = []
    for column in columns.fields:
        dtype = frame.schema[column]
        if dtype.is_numeric():
            made.append(pl.col(column).cast(pl.Float64).fill_nan(None))
        elif dtype.is_temporal() or isinstance(dtype, pl.Categorical | pl.Enum):
            made.append(pl.col(column).cast(pl.String))
        elif dtype == pl.Null:
            made.append(pl.col(column).cast(pl.Float64))
        elif dtype not in {pl.Boolean, pl.String}:
            message = f"{file}: column {column} has {dtype}, which no field can hold"
            raise OperatorError(message)
    labels = list(columns.tags.values())
    if columns.measurement is None:
        labels.append(columns.measurement_column)
    made += [pl.col(column).cast(pl.String) for column in labels]
    return frame.with_columns(made)
