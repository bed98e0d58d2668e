"""`fleetcast bench`."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleetcast.cli.common import table
from fleetcast.errors import OperatorError, reason
from fleetcast.output_file import output_file

if TYPE_CHECKING:
    from fleetcast.bench.workload import Workload


@click.command()
@click.argument("databases", nargs=-1, required=True, metavar="DATABASE...")
@click.option("--rows", type=click.IntRange(min=1_000), default=200_000)
@click.option("--batch", "batch_rows", type=click.IntRange(1, 1_000), default=1_000)
@click.option("--connections", type=click.IntRange(1, 64), default=4)
@click.option("--trucks", type=click.IntRange(min=1), default=500)
@click.option(
    "--joining",
    type=click.FloatRange(0, 1),
    default=0.01,
    help="Share of the trucks that are new every ten seconds.",
)
@click.option("--seed", type=int, default=42)
@click.option(
    "--warm-up",
    "warm_up_rows",
    type=click.IntRange(min=0),
    default=0,
    help="Rows that are written before the clock starts.",
)
@click.option(
    "--repeats",
    "repeats_max",
    type=click.IntRange(min=1),
    default=1,
    help="How often --rows are loaded at most; fewer if --precision is reached.",
)
@click.option(
    "--precision",
    type=click.FloatRange(min=0.1),
    default=5.0,
    help="Percent to which the median of the rate is to be known, for --repeats.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=1),
    help="Rows per second of an open loop, with latency from when a batch was due.",
)
@click.option(
    "--workload",
    "rows_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Rows to write in place of trucks: JSON lines or line protocol, with times moved to now.",
)
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Queries that are timed as well, one JSON object on each line.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the databases, on the disk to measure; they are removed at the end.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default="bench.json",
    help="File for the figures; next to it a page (.html) shows them, and a table (.csv) has them.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")
def bench(
    databases: tuple[str, ...],
    rows_file: Path | None,
    queries: Path | None,
    folder: Path | None,
    output: Path,
    as_json: bool,
    precision: float,
    **sizes: Any,
) -> None:
    """Measure databases with one seeded fleet: load, read, kill -9, compare with the truth.

    The exit status is 1 if a database could not be measured.

    DATABASE is one of http, grpc, adapter, embedded (fleetcast), sqlite, duckdb, postgresql,
    timescaledb, prometheus, victoriametrics, questdb, lines (line protocol over HTTP). Options
    follow a colon.

    bench compare FIRST SECOND shows the figures of two runs side by side.

    Example: fleetcast bench http sqlite lines:url=http://127.0.0.1:8086/write,command="influxd"
    """
    from fleetcast.bench.comparing import compared, csv_of
    from fleetcast.bench.report import measured, page, rows_of
    from fleetcast.bench.workload import Workload

    if databases[0] == "compare":
        click.echo(table(*compared(*_runs(databases[1:]))))
        return
    workload = _with_files(Workload(**sizes, precision=precision / 100), rows_file, queries)
    with tempfile.TemporaryDirectory(prefix="fleetcast-bench-", dir=folder) as work:
        # A server that does not run as root must be able to enter the folder.
        Path(work).chmod(0o755)
        document = measured(
            databases, Path(work), workload, lambda line: click.echo(line, err=True)
        )
    with output_file(output) as file:
        file.write(json.dumps(document, indent=1).encode() + b"\n")
    if output.is_file():  # a device or a pipe gets no page
        with output_file(output.resolve().with_suffix(".html")) as file:
            file.write(page(document).encode())
        with output_file(output.resolve().with_suffix(".csv")) as file:
            file.write(csv_of(document).encode())
    click.echo(json.dumps(document) if as_json else table(*rows_of(document)))
    if any("fault" in each for each in document["databases"].values()):
        click.get_current_context().exit(1)


def _with_files(workload: Workload, file: Path | None, queries: Path | None) -> Workload:
    """Adds the rows and the queries of files. Raises `OSError`, `OperatorError`."""
    from fleetcast.bench.queries import read_queries
    from fleetcast.bench.workload_file import read_once

    if file is not None:
        read = read_once(file, workload.rows_max, time.time_ns())
        workload = replace(workload, file=read)
        for what, count in read.left_out.items():
            if count:
                click.echo(f"fleetcast: {file}: left out {count:,} {what}", err=True)
    if queries is not None:
        workload = replace(workload, queries=read_queries(queries, workload.names, workload.file))
    return workload


def _runs(files: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Reads the figures of two runs. Raises `OperatorError`."""
    match files:
        case (first, second):
            return _run(first), _run(second)
    message = "bench compare takes the figures of two runs: FIRST.json SECOND.json"
    raise OperatorError(message)


def _run(file: str) -> dict[str, Any]:
    try:
        document = json.loads(Path(file).read_bytes())
    except OSError as error:
        raise OperatorError(reason(error)) from None
    except ValueError:
        document = None
    if not isinstance(document, dict) or "databases" not in document:
        message = f"{file}: not the figures of a run"
        raise OperatorError(message)
    return document
