"""Rows out of a compacted store and into one, as columns: `python -m benches.engine.scan`.

Figures are per second of processor time of this process, the best of some rounds, so that others
on the machine disturb them less. The references run in turns with what they are beside.
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fleetcast.engine import Plane, encode_records, format_time

if TYPE_CHECKING:
    from collections.abc import Callable

START_NS = 1_790_035_200 * 1_000_000_000
STEP_NS = 10 * 1_000_000_000
NOW_NS = START_NS + 86_400 * 40 * 1_000_000_000
ENTITIES, STEPS, ROUNDS = 100, 8_640, 5
BATCH_ROWS, BATCHES = 10_000, 20
MAPPING = {"time": "time", "time_unit": "ns", "measurement": "link", "entity": "entity_id"}


def cpu_seconds(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def best(*works: Callable[[], object]) -> list[float]:
    """Least processor time of each, all in turns."""
    rounds = [[cpu_seconds(work) for work in works] for _ in range(ROUNDS)]
    return [min(of_work) for of_work in zip(*rounds, strict=True)]


def rows(entities: int, steps: int) -> pl.DataFrame:
    """A fleet's day: times with jitter, five channels with two decimals, in order of time."""
    dice = np.random.default_rng(7)
    count = entities * steps
    jitter = dice.integers(0, 1_000_000, count)
    channels = {
        f"channel_{at}": (dice.normal(0, 1, count).cumsum() / 10 + 40).round(2) for at in range(5)
    }
    times = START_NS + np.repeat(np.arange(steps), entities) * STEP_NS + jitter
    ids = [f"link-{at:04}" for at in range(entities)] * steps
    return pl.DataFrame({"time": times, "entity_id": ids} | channels)


def scan_lines(folder: Path) -> list[str]:
    plane = Plane.in_memory("bench")
    plane.write_arrow(rows(ENTITIES, STEPS), mapping=MAPPING, now_ns=NOW_NS)
    plane.compact(whole=True, now_ns=NOW_NS)
    frame = pl.DataFrame(plane.scan(0, 2**62, now_ns=NOW_NS)).rechunk()
    parquet = folder / "rows.parquet"
    frame.write_parquet(parquet)
    channels = [frame[name].to_numpy() for name in frame.columns if name.startswith("channel")]
    values = len(frame) * len(channels)
    scan, read, copy = best(
        lambda: pl.DataFrame(plane.scan(0, 2**62, now_ns=NOW_NS)),
        lambda: pl.read_parquet(parquet),
        lambda: [array.copy() for array in channels],
    )
    name = f"scan of {len(frame)} rows of {len(channels)} values"
    return [
        f"{name}: {values / scan / 1e6:.0f} M values/CPU-s",
        f"polars read_parquet of them: {values / read / 1e6:.0f} M, scan {read / scan:.2f}x",
        f"copy of the five columns alone: {values / copy / 1e6:.0f} M, scan {copy / scan:.3f}x",
    ]


def write_lines() -> list[str]:
    frame = rows(BATCH_ROWS // 10, 10 * BATCHES)
    batches = [frame[at : at + BATCH_ROWS] for at in range(0, len(frame), BATCH_ROWS)]
    bodies = [
        encode_records(
            {
                "measurement": "link",
                "time": format_time(row.pop("time")),
                "tags": {"entity_id": row.pop("entity_id")},
                "fields": row,
            }
            for row in batch.iter_rows(named=True)
        )
        for batch in batches
    ]

    def columns() -> None:
        plane = Plane.in_memory("bench")
        for batch in batches:
            list(plane.write_arrow(batch, mapping=MAPPING, now_ns=NOW_NS))

    def json() -> None:
        plane = Plane.in_memory("bench")
        for body in bodies:
            plane.write_json(body, batch_records_max=BATCH_ROWS, now_ns=NOW_NS)

    of_columns, of_json = best(columns, json)
    first = len(frame) / of_columns / 1e6
    second = f"{len(frame) / of_json / 1e6:.2f} M, write_arrow {of_json / of_columns:.2f}x"
    return [
        f"write_arrow, {BATCH_ROWS} rows of 5 values a batch: {first:.2f} M rows/CPU-s",
        f"write_json of them: {second}",
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = scan_lines(Path(folder)) + write_lines()
    print("\n".join(lines))


if __name__ == "__main__":
    main()
