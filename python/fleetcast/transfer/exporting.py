"""Export of a tenant's rows, as of one instant, into a file that is whole or not there."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl

from fleetcast.engine import field_of_column
from fleetcast.errors import OperatorError
from fleetcast.transfer.opening import STDIN, zstd_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from fleetcast.engine import ArrowStream

_ROWS = 16_384  # of a batch in memory
_KINDS = {pl.Float64(): "double", pl.Boolean(): "boolean", pl.String(): "string"}
_TIME = "%Y-%m-%dT%H:%M:%S%.fZ"
_FIRST_FIELD = 3  # after time, measurement and tags


def export_parquet(stream: ArrowStream, file: BinaryIO, advance: Callable[[int], object]) -> int:
    """Writes all rows of a scan as Parquet and gives their number."""
    rows = 0

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        nonlocal rows
        rows += frame.height
        advance(frame.height)
        return frame

    scan = pl.scan_arrow_c_stream(stream)
    scan.map_batches(count, streamable=True).sink_parquet(file)
    return rows


def export_jsonl(stream: ArrowStream, file: BinaryIO, advance: Callable[[int], object]) -> int:
    """Writes all rows of a scan as a record a line and gives their number."""
    rows = 0
    for frame in _frames(pl.scan_arrow_c_stream(stream)):
        file.write("".join(_records(frame)).encode())
        rows += frame.height
        advance(frame.height)
    return rows


def export_csv(
    stream: ArrowStream, tags: Sequence[str], file: BinaryIO, advance: Callable[[int], object]
) -> int:
    """Writes all rows of a scan, whose tags are among `tags`, and gives their number.

    Each name in the header has its role behind a bar, as in InfluxDB's annotated CSV.
    """
    rows = 0
    scan = pl.scan_arrow_c_stream(stream)
    _flat(pl.DataFrame(schema=scan.collect_schema()), tags).write_csv(file)
    for frame in _frames(scan):
        flat = _flat(frame, tags)
        if frame["tags"].map.len().sum() != _counts(flat, len(tags)):
            message = "there are tags that were not there a moment ago; export once more"
            raise OperatorError(message)
        flat.write_csv(file, include_header=False)
        rows += frame.height
        advance(frame.height)
    return rows


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


def _frames(scan: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    for frame in scan.collect_batches(chunk_size=_ROWS, maintain_order=True):
        yield from frame.iter_slices(_ROWS)


def _records(frame: pl.DataFrame) -> Iterable[str]:
    times = frame["time"].dt.strftime(_TIME).to_list()
    measurements = frame["measurement"].cast(pl.String).to_list()
    names = [field_of_column(name) for name in frame.columns[_FIRST_FIELD:]]
    columns = [frame[name].to_list() for name in frame.columns[_FIRST_FIELD:]]
    for row, (time, measurement, tags) in enumerate(
        zip(times, measurements, frame["tags"].to_list(), strict=True)
    ):
        cells = zip(names, columns, strict=True)
        fields = {name: column[row] for name, column in cells if column[row] is not None}
        record = {"measurement": measurement, "time": time, "tags": tags, "fields": fields}
        yield json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
