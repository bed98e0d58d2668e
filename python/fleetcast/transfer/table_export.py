"""Export of a tenant's rows as a table: CSV and Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from fleetcast.engine import field_of_column
from fleetcast.errors import OperatorError
from fleetcast.transfer.parquet import write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from fleetcast.engine import RowStream

_KINDS = {pl.Float64(): "double", pl.Boolean(): "boolean", pl.String(): "string"}
_TIME = "%Y-%m-%dT%H:%M:%S%.fZ"
_FIRST_FIELD = 3  # after time, measurement and tags


def export_parquet(rows: RowStream, file: BinaryIO, advance: Callable[[int], object]) -> int:
    """Writes all rows of a scan as Parquet and returns their number."""
    return write_parquet(_frames(rows, advance), file)


def export_csv(
    rows: RowStream, tags: Sequence[str], file: BinaryIO, advance: Callable[[int], object]
) -> int:
    """Writes all rows of a scan, whose tags are among `tags`, and returns their number.

    Each name in the header has its role after a bar, as in InfluxDB's annotated CSV. Example:
    `time|dateTime:RFC3339,measurement|measurement,entity_id|tag,snr_db|double`.
    """
    count = 0
    for number, frame in enumerate(_frames(rows, advance)):
        flat = _flat(frame, tags)
        if frame["tags"].map.len().sum() != _counts(flat, len(tags)):
            message = "there are tags that were not there a moment ago; export once more"
            raise OperatorError(message)
        flat.write_csv(file, include_header=number == 0)
        count += frame.height
    return count


def _frames(rows: RowStream, advance: Callable[[int], object]) -> Iterator[pl.DataFrame]:
    """Yields the batches of a scan, or an empty frame if there is no row.

    The batches come in turn, because polars' streams keep more batches on more processors.
    """
    is_empty = True
    for batch in rows:
        is_empty = False
        advance(len(batch))
        yield pl.DataFrame(batch)
    if is_empty:
        yield pl.DataFrame(rows)


def _flat(frame: pl.DataFrame, tags: Sequence[str]) -> pl.DataFrame:
    """Returns a frame with a column for each tag, and the roles of all columns in their names."""
    schema = frame.schema
    fields = [
        pl.col(name).alias(f"{field_of_column(name)}|{_KINDS[schema[name]]}")
        for name in frame.columns[_FIRST_FIELD:]
    ]
    return frame.select(
        pl.col("time").dt.strftime(_TIME).alias("time|dateTime:RFC3339"),
        pl.col("measurement").cast(pl.String).alias("measurement|measurement"),
        *[pl.col("tags").map.get(tag).alias(f"{tag}|tag") for tag in tags],
        *fields,
    )


def _counts(flat: pl.DataFrame, tags: int) -> int:
    """Counts the cells of the tag columns that are not null."""
    columns = flat.columns[2 : 2 + tags]
    return sum(flat[column].count() for column in columns)
