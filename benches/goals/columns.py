"""Figures of rows as columns, `write_arrow` and import of Parquet, beside `write_json` of them."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import polars as pl

from benches.goals.table import Line
from benches.goals.transfer import import_all
from benches.harness.measure import alternate, cpu_seconds
from benches.harness.paths import DATA
from benches.inputs import fleet
from fleetcast._core import CALL_RECORDS_MAX, Plane
from fleetcast.transfer.mapping import ColumnOptions
from fleetcast.transfer.parquet_reader import ParquetReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.goals.effort import Effort

# So many that start-up, and caches that the work before left cold, are a small part of it.
BODIES = 100
WIDE_FIELDS, WIDE_ENTITIES = 40, 1_000


def column_lines(effort: Effort) -> list[Line]:
    """Rows of the fleet and wide ones to the memory twin, and a file of the former."""
    rows = [row for body in fleet.bodies(BODIES) for row in json.loads(body)]
    wide_rows = wide_records()
    rates = {
        "fleet": alternate(
            effort.rounds,
            {
                "arrow": _columns(_batches(rows)),
                "json": _json(_batches(rows)),
                "Parquet": _parquet(rows),
            },
        ),
        "wide": alternate(
            effort.rounds,
            {"arrow": _columns(_batches(wide_rows)), "json": _json(_batches(wide_rows))},
        ),
    }
    lines = [
        Line.at_least(
            f"write_arrow, {what}, 10,000 a batch, rows per CPU second",
            rates[name]["arrow"], "write_json", rates[name]["json"], 2,
        )
        for name, what in (("fleet", "the fleet"), ("wide", f"{WIDE_FIELDS} fields, shuffled"))
    ]  # fmt: skip
    imported = Line.at_least(
        "import of Parquet, rows per CPU second",
        rates["fleet"]["Parquet"], "write_json, 10,000 a batch", rates["fleet"]["json"], 0.8,
    )  # fmt: skip
    return [*lines, imported]


def _batches(rows: list[dict]) -> list[list[dict]]:
    return [rows[at : at + CALL_RECORDS_MAX] for at in range(0, len(rows), CALL_RECORDS_MAX)]


def wide_records(count: int = 2 * CALL_RECORDS_MAX) -> list[dict]:
    """Records of many fields in no order of entities; one in five a text, one in ten missing."""
    dice = random.Random(7)

    def value(number: int) -> object:
        if number % 5 == 0:
            return f"state {dice.randrange(9)}"
        return round(dice.uniform(-100, 100), 3)

    return [
        {
            "measurement": "satellite",
            "time": f"2026-03-01T00:{at // 60_000 % 60:02}:{at // 1_000 % 60:02}.{at % 1_000:03}Z",
            "tags": {
                "entity_id": f"satellite-{dice.randrange(WIDE_ENTITIES):04}",
                "operator": "northern-sky",
            },
            "fields": {
                f"channel_{number:02}": value(number)
                for number in range(WIDE_FIELDS)
                if dice.randrange(10)
            },
        }
        for at in range(count)
    ]


def flat(records: list[dict]) -> pl.DataFrame:
    """Records as a table with a column for each tag and field."""
    frame = pl.DataFrame(
        [
            {"time": each["time"], "measurement": each["measurement"]}
            | each["tags"]
            | each["fields"]
            for each in records
        ],
        infer_schema_length=None,
    )
    return frame.with_columns(pl.col("time").str.to_datetime(time_unit="ns", time_zone="UTC"))


def _columns(batches: list[list[dict]]) -> Callable[[], float]:
    plane, frames = Plane.in_memory("bench"), [flat(batch) for batch in batches]
    mapping = {
        "time": "time",
        "measurement": {"column": "measurement"},
        "tags": {tag: tag for tag in batches[0][0]["tags"]},
    }

    def work() -> None:
        for frame in frames:
            plane.write_arrow(frame, mapping=mapping)

    return _per_second(work, batches)


def _parquet(rows: list[dict]) -> Callable[[], float]:
    plane, path = Plane.in_memory("bench"), str(DATA / "columns.parquet")
    flat(rows).write_parquet(path)
    tags = tuple(name for name in rows[0]["tags"] if name not in {"entity_id", "entity_type"})
    options = ColumnOptions(tag_columns=tags)
    return _per_second(
        lambda: import_all(plane, ParquetReader(path, lambda _: None, options)), _batches(rows)
    )


def _json(batches: list[list[dict]]) -> Callable[[], float]:
    plane = Plane.in_memory("bench")
    bodies = [json.dumps(batch, separators=(",", ":")).encode() for batch in batches]

    def work() -> None:
        for body in bodies:
            plane.write_json(body, batch_records_max=CALL_RECORDS_MAX)

    return _per_second(work, batches)


def _per_second(work: Callable[[], None], batches: list[list[dict]]) -> Callable[[], float]:
    work()
    return lambda: sum(map(len, batches)) / cpu_seconds(work)
