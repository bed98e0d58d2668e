"""Export of a tenant's rows, as of one instant, into a file that is whole or not there."""

from __future__ import annotations

import fcntl
import gzip
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl

from fleetcast.engine import field_of_column
from fleetcast.errors import OperatorError
from fleetcast.transfer.opening import STDIN, zstd_module
from fleetcast.transfer.parquet import write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from fleetcast.engine import RowStream

_KINDS = {pl.Float64(): "double", pl.Boolean(): "boolean", pl.String(): "string"}
_TIME = "%Y-%m-%dT%H:%M:%S%.fZ"
_FIRST_FIELD = 3  # after time, measurement and tags


def export_parquet(rows: RowStream, file: BinaryIO, advance: Callable[[int], object]) -> int:
    """Writes all rows of a scan as Parquet and gives their number."""
    return write_parquet(_frames(rows, advance), file)


def export_jsonl(rows: RowStream, file: BinaryIO, advance: Callable[[int], object]) -> int:
    """Writes all rows of a scan as a record a line and gives their number."""
    count = 0
    for batch in rows:
        count += len(batch)
        advance(len(batch))
        while lines := batch.json_lines():
            file.write(lines)
    return count


def export_csv(
    rows: RowStream, tags: Sequence[str], file: BinaryIO, advance: Callable[[int], object]
) -> int:
    """Writes all rows of a scan, whose tags are among `tags`, and gives their number.

    Each name in the header has its role behind a bar, as in InfluxDB's annotated CSV.
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
    """The batches of a scan; where there is no row, a frame of no rows.

    One after the other, because polars' own streams keep more of them the more processors there
    are.
    """
    is_empty = True
    for batch in rows:
        is_empty = False
        advance(len(batch))
        yield pl.DataFrame(batch)
    if is_empty:
        yield pl.DataFrame(rows)


@contextmanager
def written(name: str) -> Iterator[BinaryIO]:
    """A file to be filled that gets its name when it is whole and durable; `-` is standard output.

    Until then it is called `NAME.part`, which another export of the name replaces. Text may be
    compressed by its ending, `.gz` or `.zst`. Raises `OSError`, `OperatorError`.
    """
    if name == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{part} is being written by another export"
            raise OperatorError(message) from None
        try:
            with _compressed(name, file) as target:
                yield target
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _compressed(name: str, file: BinaryIO) -> Iterator[BinaryIO]:
    if name.endswith(".gz"):
        with gzip.GzipFile(fileobj=file, mode="wb") as inside:
            yield cast("BinaryIO", inside)
    elif name.endswith(".zst"):
        with zstd_module().ZstdFile(file, mode="wb") as inside:
            yield cast("BinaryIO", inside)
    else:
        yield file


def _flat(frame: pl.DataFrame, tags: Sequence[str]) -> pl.DataFrame:
    """A frame of a scan with a column for each tag, and the roles of all columns in their names."""
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
    """Cells of the tag columns that hold something."""
    columns = flat.columns[2 : 2 + tags]
    return sum(flat[column].count() for column in columns)
