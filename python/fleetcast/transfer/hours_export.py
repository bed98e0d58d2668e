"""Export of hourly values: the statistics of each field of an entity in each hour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from fleetcast.transfer.parquet import write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from fleetcast.engine import KeptHours, Plane

_HOUR_NS = 3_600_000_000_000
_PIECE_VALUES = 1 << 18
"""Hours times fields that are in memory at a time."""
_TIME = "%Y-%m-%dT%H:%M:%S%.fZ"
_TIMES = ("time", "last_time")
_SCHEMA: dict[str, pl.DataType] = {
    "time": pl.Datetime("ns", "UTC"),
    "measurement": pl.String(),
    "entity_id": pl.String(),
    "field": pl.String(),
    "count": pl.Int64(),
    "sum": pl.Float64(),
    "min": pl.Float64(),
    "max": pl.Float64(),
    "last": pl.Float64(),
    "last_time": pl.Datetime("ns", "UTC"),
}


def hour_frames(
    plane: Plane,
    span: tuple[int, int],
    chosen: tuple[tuple[str, ...], tuple[str, ...]],
    advance: Callable[[int], object],
) -> Iterator[pl.DataFrame]:
    """Yields the hours of one entity after another, by time and field, and an empty frame first.

    `chosen` has the measurements and the entities; none means all. Raises `StoreError`.
    """
    measurements, entities = chosen
    yield pl.DataFrame(schema=_SCHEMA)
    kept = plane.kept_hours()
    for measurement, contents in sorted(plane.describe()["measurements"].items()):
        if measurements and measurement not in measurements:
            continue
        start, end = _within(span, kept, contents)
        step = max(_PIECE_VALUES // max(len(contents["fields"]), 1), 1) * _HOUR_NS
        for entity in plane.entity_ids(measurement):
            if entities and entity not in entities:
                continue
            at = start
            while at < end:
                until = min(at - at % _HOUR_NS + step, end)
                frame = pl.DataFrame(plane.hours_frame(measurement, entity, at, until))
                at = until
                if frame.height:
                    advance(frame.height)
                    yield _named(frame, measurement, entity)


def write_hours(frames: Iterator[pl.DataFrame], form: str, file: BinaryIO) -> None:
    """Writes hours as JSON lines, CSV or Parquet (`jsonl`, `csv`, `parquet`)."""
    if form == "parquet":
        write_parquet(frames, file)
        return
    texts = [pl.col(name).dt.strftime(_TIME) for name in _TIMES]
    for number, frame in enumerate(frames):
        if form == "csv":
            frame.with_columns(texts).write_csv(file, include_header=number == 0)
        elif frame.height:
            frame.with_columns(texts).write_ndjson(file)


def _within(span: tuple[int, int], kept: KeptHours, contents: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the part of a span from the first to the last hour of rows and kept hours."""
    firsts = [contents["first_ns"], kept.first_ns]
    lasts = [contents["last_ns"], kept.last_ns]
    first = min((time for time in firsts if time is not None), default=0)
    last = max((time for time in lasts if time is not None), default=first - _HOUR_NS)
    return max(span[0], first - first % _HOUR_NS), min(span[1], last + _HOUR_NS)


def _named(frame: pl.DataFrame, measurement: str, entity: str) -> pl.DataFrame:
    names = pl.lit(measurement).alias("measurement"), pl.lit(entity).alias("entity_id")
    named = frame.with_columns(*names, pl.col("count").cast(pl.Int64))
    return named.select(*_SCHEMA)
