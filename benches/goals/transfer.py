"""Figures of files: import of each format beside `write_json` of the same rows, and export."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import polars as pl

from benches.goals.table import Line
from benches.harness.measure import alternate, cpu_seconds
from benches.harness.paths import DATA
from benches.inputs import fleet
from benches.inputs.lines import lines
from fleetcast._core import CALL_RECORDS_MAX, Plane
from fleetcast.config.sections import Limits
from fleetcast.transfer.exporting import export_parquet
from fleetcast.transfer.importer import Importer
from fleetcast.transfer.mapping import ColumnOptions
from fleetcast.transfer.readers import JsonReader, ProtocolReader
from fleetcast.transfer.report import Report
from fleetcast.transfer.table_readers import CsvReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.goals.effort import Effort
    from fleetcast.transfer.readers import Reader

EVER = (0, 2**62)
GOALS = {"JSON lines": 0.8, "CSV": 0.5, "line protocol": 0.9}


def transfer_lines(effort: Effort) -> list[Line]:
    """Files of the fleet's rows into the memory twin, and rows of it as Parquet."""
    rows = [row for body in fleet.bodies(max(effort.bodies, 20)) for row in json.loads(body)]
    bodies = [
        json.dumps(rows[at : at + CALL_RECORDS_MAX], separators=(",", ":")).encode()
        for at in range(0, len(rows), CALL_RECORDS_MAX)
    ]
    readers = _readers(rows)
    planes = {name: Plane.in_memory("bench") for name in ("write_json", *readers)}

    def write_json() -> None:
        for body in bodies:
            planes["write_json"].write_json(body, batch_records_max=CALL_RECORDS_MAX)

    def per_second(work: Callable[[], None]) -> Callable[[], float]:
        work()
        return lambda: len(rows) / cpu_seconds(work)

    def importing(name: str) -> Callable[[], None]:
        return lambda: import_all(planes[name], readers[name]())

    rates = alternate(
        effort.rounds,
        {"write_json": per_second(write_json)}
        | {name: per_second(importing(name)) for name in readers},
    )
    found = [
        Line.at_least(
            f"import of {name}, rows per CPU second",
            rates[name], "write_json, 10,000 a batch", rates["write_json"], goal,
        )
        for name, goal in GOALS.items()
    ]  # fmt: skip
    return [*found, _export_line(effort, planes["write_json"])]


def _export_line(effort: Effort, plane: Plane) -> Line:
    frame = pl.DataFrame(plane.scan(*EVER))
    exported = alternate(
        effort.rounds,
        {
            "export": lambda: (
                frame.height
                / cpu_seconds(
                    lambda: export_parquet(plane.scan(*EVER), io.BytesIO(), lambda _: None)
                )
            ),
            "polars": lambda: frame.height / cpu_seconds(lambda: frame.write_parquet(io.BytesIO())),
        },
    )
    return Line.at_least(
        "export to Parquet, rows per CPU second",
        exported["export"], "polars write_parquet of the ready frame", exported["polars"], 0.5,
    )  # fmt: skip


def import_all(plane: Plane, reader: Reader) -> None:
    """Writes all that a reader gives, of which nothing may be rejected."""
    importer = Importer(Report(), Limits(), _fail, lambda _: None)
    for span in reader.spans():
        for batch in reader.batch(span).pieces():
            importer.write(plane, batch)


def _fail(line: int, reason: str, record: str) -> None:
    message = f"{line}: {reason}: {record}"
    raise AssertionError(message)


def _readers(rows: list[dict]) -> dict[str, Callable[[], Reader]]:
    """Readers of the rows in a file of each format."""
    paths = {name: str(DATA / f"fleet.{name}") for name in ("jsonl", "csv", "lines")}
    with open(paths["jsonl"], "w") as file:  # noqa: PTH123  a name as the readers take it
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    with open(paths["lines"], "wb") as file:  # noqa: PTH123
        file.write(lines(rows))
    flat = pl.DataFrame(
        [
            {"time": row["time"], "measurement": row["measurement"], **row["tags"], **row["fields"]}
            for row in rows
        ],
        infer_schema_length=None,
    )
    flat.write_csv(paths["csv"])
    tags = tuple(name for name in rows[0]["tags"] if name not in {"entity_id", "entity_type"})
    options = ColumnOptions(tag_columns=tags)

    def ignore(_: int) -> None:
        return None

    return {
        "JSON lines": lambda: JsonReader(paths["jsonl"], ignore),
        "CSV": lambda: CsvReader(paths["csv"], ignore, options, lambda _: {}),
        "line protocol": lambda: ProtocolReader(paths["lines"], ignore, "ns"),
    }
