"""Figures of files: import of each format beside `write_json` of the same rows, and export."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from benches.goals.table import Line, ms
from benches.harness.measure import alternate, cpu_seconds
from benches.harness.paths import DATA
from benches.inputs import fleet, wide
from benches.inputs.lines import lines
from fleetcast._core import CALL_RECORDS_MAX, Plane
from fleetcast.config.sections import Limits
from fleetcast.transfer.csv_reader import CsvReader
from fleetcast.transfer.importer import Importer
from fleetcast.transfer.mapping import ColumnOptions
from fleetcast.transfer.readers import json_reader, protocol_reader
from fleetcast.transfer.report import Report
from fleetcast.transfer.table_export import export_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.goals.effort import Effort
    from fleetcast.transfer.readers import Reader

EVER = (0, 2**62)
GOALS = {"JSON lines": 0.8, "CSV": 0.5, "line protocol": 0.9}
FLEET_BODIES, WIDE_ROWS = 200, 20_000  # at least: what opening a file costs must not show


def transfer_lines(effort: Effort) -> list[Line]:
    """Files of two workloads into the memory twin, and rows of the first as Parquet."""
    factor = max(effort.bodies // 8, 1)
    bodies = fleet.bodies(FLEET_BODIES * factor)
    found, plane = _import_lines(
        effort, "fleet", [row for body in bodies for row in json.loads(body)]
    )
    wide_lines, _ = _import_lines(effort, "40 fields", wide.rows(WIDE_ROWS * factor))
    return [*found, *wide_lines, _export_line(effort, plane), _start_line()]


def _import_lines(effort: Effort, name: str, rows: list[dict]) -> tuple[list[Line], Plane]:
    """Imports of the same rows in each format, and the plane of the reference."""
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
            f"import of {form} ({name}), rows per CPU second",
            rates[form], "write_json, 10,000 a batch", rates["write_json"], goal,
        )
        for form, goal in GOALS.items()
    ]  # fmt: skip
    return found, planes["write_json"]


def _start_line() -> Line:
    """CPU time of a `fleetcast import` that finds nothing to import, which no rate above has."""
    with TemporaryDirectory(dir=DATA) as folder:
        empty = Path(folder) / "empty"
        empty.touch()
        _run(folder, "init")
        _run(folder, "tenant", "create", "acme")
        seconds = _run(folder, "import", "--tenant", "acme", "--format", "jsonl", str(empty))
    return Line("start of `fleetcast import`, in no rate above", ms(seconds))


def _run(folder: str, *words: str) -> float:
    """CPU seconds of a command on a data directory in `folder`."""
    before = os.times()
    environment = os.environ | {"FLEETCAST_DATA": str(Path(folder) / "data")}
    command = [sys.executable, "-m", "fleetcast", *words]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


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
    importer = Importer(Report(), Limits(), _fail, lambda: None)
    for span in reader.spans():
        for batch in reader.batch(span).pieces():
            importer.write(plane, batch)


def _fail(line: int, reason: str, record: str) -> None:
    message = f"{line}: {reason}: {record}"
    raise AssertionError(message)


def _readers(rows: list[dict]) -> dict[str, Callable[[], Reader]]:
    """Readers of the rows in a file of each format."""
    names = ("jsonl", "csv", "lines")
    paths = {name: str(DATA / f"{rows[0]['measurement']}.{name}") for name in names}
    # In one write each, as a copy or a download has them: many small ones leave small pages, which
    # cost a reader three times as much.
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    Path(paths["jsonl"]).write_text(text)
    Path(paths["lines"]).write_bytes(lines(rows))
    flat = pl.DataFrame(
        [
            {"time": row["time"], "measurement": row["measurement"], **row["tags"], **row["fields"]}
            for row in rows
        ],
        infer_schema_length=None,
    )
    Path(paths["csv"]).write_text(flat.write_csv())
    tags = tuple(name for name in rows[0]["tags"] if name not in {"entity_id", "entity_type"})
    options = ColumnOptions(tag_columns=tags)

    def ignore(_: int) -> None:
        return None

    return {
        "JSON lines": lambda: json_reader(paths["jsonl"], ignore),
        "CSV": lambda: CsvReader(paths["csv"], ignore, options, lambda _: {}),
        "line protocol": lambda: protocol_reader(paths["lines"], ignore, "ns"),
    }
