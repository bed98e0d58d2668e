"""Sets of real telemetry as series of entities, read from the folder that `real_input` is given.

They are, as the folder's README describes them:

- satellite: Es/N0 of one downlink, `link` with `snr_db`; values that mean loss of lock are data.
- microwave: received and transmitted level of terrestrial links, `link` with `rsl_dbm` and
  `tsl_dbm`; -32768 means missing and is left out. 50 links of 500 unless told otherwise.
- pools: bytes offered to pools of servers, `pool_interval` with `offered_bytes`, not a number
  means missing. The series endpoint does not serve this measurement (G16).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from fleetcast.engine import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MINUTE_NS = 60 * 1_000_000_000
MISSING_LEVEL = -32_768
# The files of links and pools carry no clock; these are the first instants given to them.
MICROWAVE_START_NS = parse_time("2026-01-01T00:00:00Z")
POOLS_START_NS = parse_time("2025-10-01T00:00:00Z")

Row = tuple[int, dict[str, float]]


@dataclass
class Series:
    """Everything one entity sent, by time."""

    tags: dict[str, str]
    rows: list[Row]

    @property
    def entity_id(self) -> str:
        return self.tags["entity_id"]


@dataclass
class Set:
    """One set of the input."""

    name: str
    measurement: str
    series: list[Series]

    def records(self) -> Iterator[str]:
        """JSON records in the order a fleet sends them: by time, then by entity."""
        heads = [(json.dumps(series.tags), series.rows) for series in self.series]
        merged = sorted(
            (time_ns, at, row)
            for at, (_, rows) in enumerate(heads)
            for row, (time_ns, _) in enumerate(rows)
        )
        for time_ns, at, row in merged:
            tags, rows = heads[at]
            yield (
                f'{{"measurement":"{self.measurement}","time":"{format_time(time_ns)}",'
                f'"tags":{tags},"fields":{json.dumps(rows[row][1])}}}'
            )

    @property
    def row_count(self) -> int:
        return sum(len(series.rows) for series in self.series)

    @property
    def value_count(self) -> int:
        return sum(len(fields) for series in self.series for _, fields in series.rows)


def read_satellite(data: Path, rows_max: int) -> Set:
    frame = pl.read_csv(data / "links" / "satellite_esno_30s.csv.gz", n_rows=rows_max)
    rows: list[Row] = [
        (parse_time(moment.strip().replace(" ", "T") + "Z"), {"snr_db": float(value)})
        for value, moment in zip(frame["esno"], frame["timestamp"], strict=True)
    ]
    return Set("satellite", "link", [Series({"entity_id": "satellite-1"}, sorted_by_time(rows))])


def read_microwave(data: Path, links_max: int, rows_max: int) -> Set:
    sources = {}
    for name in ("rsl", "tsl"):
        path = data / "links" / f"microwave_{name}_decidbm_1min.parquet"
        columns = [c for c in pl.read_parquet_schema(path) if is_link(c)]
        wanted = [column for column in columns if link_number(column) < links_max]
        sources[f"{name}_dbm"] = pl.read_parquet(path, columns=wanted, n_rows=rows_max)
    series = []
    for column in sources["rsl_dbm"].columns:
        levels = {name: frame[column].to_list() for name, frame in sources.items()}
        rows = []
        for row in range(len(levels["rsl_dbm"])):
            fields = {
                name: values[row] / 10
                for name, values in levels.items()
                if values[row] not in (None, MISSING_LEVEL)
            }
            if fields:
                rows.append((MICROWAVE_START_NS + row * MINUTE_NS, fields))
        if rows:  # some links never reported
            link, channel = column.split("_")
            series.append(Series({"entity_id": column, "link": link, "channel": channel}, rows))
    return Set("microwave", "link", series)


def is_link(column: str) -> bool:
    return column.replace("_", "").isdigit()


def link_number(column: str) -> int:
    return int(column.partition("_")[0])


def read_pools(data: Path, rows_max: int) -> Set:
    path = data / "pools" / "hosting_pools_offered_bytes_15min.parquet"
    frame = pl.read_parquet(path, n_rows=rows_max)
    series = []
    for column in frame.columns:
        if not frame[column].dtype.is_float():
            continue
        rows = [
            (POOLS_START_NS + row * 15 * MINUTE_NS, {"offered_bytes": value})
            for row, value in enumerate(frame[column].to_list())
            if value is not None and math.isfinite(value)
        ]
        series.append(Series({"entity_id": column}, rows))
    return Set("pools", "pool_interval", series)


def sorted_by_time(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row[0])
