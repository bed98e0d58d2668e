"""Files of history in long form: `entity_id`, `time` (UTC) and a family's input fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from fleetcast.engine import parse_time
from fleetcast.errors import OperatorError
from fleetcast.forecast.rows import rows_by_entity
from fleetcast.transfer.foreign_files import read_by_polars

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Rows

_DAMAGED_PARQUET = "is Parquet that is damaged or cut short"
_DAMAGED_CSV = (
    "is neither Parquet nor CSV that can be read: see that it is UTF-8, that its quotes are closed,"
    " and that no line has more cells than the first"
)


def read_history(path: Path, family: Family) -> dict[str, Rows]:
    """Rows of each entity of a Parquet or CSV file. The first bytes tell the format.

    Raises `OSError`, `OperatorError`.
    """
    with path.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    with read_by_polars(path, _DAMAGED_PARQUET if parquet else _DAMAGED_CSV):
        frame = pl.read_parquet(path) if parquet else _read_csv(path)
    missing = [n for n in ("entity_id", "time", family.target) if n not in frame.columns]
    if missing:
        message = f"{path}: lacks the column {missing[0]}"
        raise OperatorError(message)
    frame = frame.select("entity_id", "time", *(n for n in family.fields if n in frame.columns))
    frame = frame.with_columns(
        pl.col("entity_id").cast(pl.String),
        _times(frame["time"], path),
        *(_numbers(frame[name], path) for name in frame.columns[2:]),
    ).filter(pl.col("entity_id") != "")
    if frame.is_empty():
        message = f"{path}: holds no rows of any entity"
        raise OperatorError(message)
    return rows_by_entity(frame, family.fields)


def _read_csv(path: Path) -> pl.DataFrame:
    """Reads all columns as text. Raises `OSError`, and the errors of polars."""
    try:
        return pl.read_csv(path, infer_schema=False)
    except pl.exceptions.NoDataError:
        return pl.DataFrame()


def _times(column: pl.Series, path: Path) -> pl.Series:
    if isinstance(column.dtype, pl.Datetime):
        zoned = column.dtype.time_zone is not None
        times = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zoned else column
    elif column.dtype == pl.String:
        times = _parsed(column, path)
    else:
        message = f"{path}: the column time holds {column.dtype}, not times"
        raise OperatorError(message)
    if times.null_count():
        message = f"{path}: row {times.is_null().arg_max()} has no time"
        raise OperatorError(message)
    return times.cast(pl.Datetime("ns")).alias("time")


def _parsed(column: pl.Series, path: Path) -> pl.Series:
    """Reads ISO 8601 as the service does: with an offset, or in UTC."""
    texts = column.unique()
    instants = []
    for text in texts:
        try:
            instants.append(parse_time(text or ""))
        except ValueError as error:
            message = f"{path}: {text!r} is no time: {error}"
            raise OperatorError(message) from error
    return column.replace_strict(texts, pl.Series(instants, dtype=pl.Int64)).cast(pl.Datetime("ns"))


def _numbers(column: pl.Series, path: Path) -> pl.Series:
    if column.dtype == pl.String:
        blank = column.str.strip_chars().is_in(["", "null", "None", "NA"])
        column = column.set(blank.fill_null(value=True), None)
    elif not column.dtype.is_numeric() and column.dtype != pl.Null:
        message = f"{path}: the column {column.name} holds {column.dtype}, not numbers"
        raise OperatorError(message)
    numbers = column.cast(pl.Float64, strict=False)
    lost = numbers.is_null() & column.is_not_null()
    if lost.any():
        message = f"{path}: {column.name} {column.filter(lost)[0]!r} is no number"
        raise OperatorError(message)
    return numbers
