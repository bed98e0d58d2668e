"""Figures of rows as columns: `write_arrow` beside `write_json` of the same rows."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import polars as pl

from benches.goals.table import Line
from benches.harness.measure import alternate, cpu_seconds
from benches.inputs import fleet
from fleetcast._core import CALL_RECORDS_MAX, Plane

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.goals.effort import Effort

GOAL = 2
WIDE_FIELDS, WIDE_ENTITIES = 40, 1_000


def column_lines(effort: Effort) -> list[Line]:
    """The fleet's rows and wide ones to the memory twin, 10,000 a batch."""
    rows = [row for body in fleet.bodies(max(effort.bodies, 20)) for row in json.loads(body)]
    found = []
    for name, wanted in (("the fleet", rows), (f"{WIDE_FIELDS} fields, shuffled", wide_records())):
        batches = [
            wanted[at : at + CALL_RECORDS_MAX]
            for at in range(0, len(wanted) - CALL_RECORDS_MAX + 1, CALL_RECORDS_MAX)
        ]
        rates = alternate(effort.rounds, {"arrow": _columns(batches), "json": _json(batches)})
        found.append(
            Line.at_least(
                f"write_arrow, {name}, 10,000 a batch, rows per CPU second",
                rates["arrow"], "write_json", rates["json"], GOAL,
            )
        )  # fmt: skip
    return found


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
            for _ in plane.write_arrow(frame, mapping=mapping):
                pass

    return _per_second(work, batches)


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
