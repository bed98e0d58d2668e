"""Figures of what leaves a store: exports with their memory, and scans."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from benches.goals.table import Line, rate
from benches.harness.measure import alternate, cpu_seconds
from benches.harness.paths import DATA
from benches.inputs import mixed_rows, month
from fleetcast._core import Plane

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.goals.effort import Effort

MEMORY_BYTES_MAX = 256_000_000
READY_DAYS = 2
ROUNDS_MAX = 3
SLICE_ROWS = 1_000_000
_LOOK_SECONDS = 0.005
_EXPORT = [sys.executable, "-c", "from fleetcast.cli import main; main()", "export"]


class Used(NamedTuple):
    """Resources of a process that has ended."""

    cpu_seconds: float
    memory_bytes: int
    own_bytes: int
    """Without pages of files that are mapped."""


def used_by(command: list[str]) -> Used:
    """Runs a command to its end."""
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(command[0], command, os.environ, file_actions=silent)
    memory = own = 0
    while True:
        ended, status, used = os.wait4(process, os.WNOHANG)
        if ended:
            break
        memory, own = max(memory, _bytes(process, "VmHWM")), max(own, _bytes(process, "RssAnon"))
        time.sleep(_LOOK_SECONDS)
    assert status == 0, command
    return Used(used.ru_utime + used.ru_stime, memory, own)


def _bytes(process: int, name: str) -> int:
    """A figure of a process's memory, 0 where it is about to end."""
    with Path(f"/proc/{process}/status").open() as file:
        _, _, rest = file.read().partition(f"{name}:")
    return int(rest.split()[0]) * 1024 if rest else 0


def export_lines(
    effort: Effort, compacted: Path, uncompacted: Path, history: month.Month, plane: Plane
) -> list[Line]:
    """Exports of all rows by a process each, beside polars' writer of a ready frame."""
    count = history.rows_per_entity * len(history.ids)
    end_ns = history.start_ns + min(READY_DAYS, history.days) * month.DAY_NS
    ready = pl.DataFrame(plane.scan(history.start_ns, end_ns, now_ns=history.end_ns)).rechunk()
    file = DATA / "ready.parquet"
    used: dict[str, Used] = {}

    def exporting(name: str, data: Path, form: str) -> Callable[[], float]:
        def work() -> float:
            used[name] = used_by(_command(data, form, DATA / f"export.{form}"))
            return count / used[name].cpu_seconds

        return work

    rates = alternate(
        min(effort.rounds, ROUNDS_MAX),
        {
            "Parquet": exporting("Parquet", compacted, "parquet"),
            "Parquet, not compacted": exporting("Parquet, not compacted", uncompacted, "parquet"),
            "polars": lambda: ready.height / cpu_seconds(lambda: ready.write_parquet(file)),
        },
    )
    reference = rates.pop("polars")
    for name, data, form in (
        ("CSV", compacted, "csv"),
        ("JSON lines", compacted, "jsonl"),
        ("JSON lines, not compacted", uncompacted, "jsonl"),
    ):
        rates[name] = exporting(name, data, form)()
        (DATA / f"export.{form}").unlink()
    lines = []
    for name, found in rates.items():
        figure = f"export of {count / 1e6:.1f} M rows to {name}, rows per CPU second"
        lines.append(
            Line.at_least(figure, found, "polars write_parquet, ready frame", reference, 0.5)
            if name.startswith("Parquet")
            else Line(figure, rate(found))
        )
        own, whole = used[name].own_bytes, used[name].memory_bytes
        text = f"{own / 1e6:.0f} MB"
        # An LMDB file is mapped: the system takes its pages back when it wants.
        of_files = f"with pages of files: {whole / 1e6:.0f} MB"
        met = own <= MEMORY_BYTES_MAX
        lines.append(Line("memory of the process, peak", text, of_files, None, "<= 256 MB", met))
    return lines


def _command(data: Path, form: str, target: Path) -> list[str]:
    span = ["--start", "2000-01-01", "--end", "2100-01-01"]
    return [
        *_EXPORT,
        "--data",
        str(data),
        "--tenant",
        "month",
        "--format",
        form,
        *span,
        str(target),
    ]


def scan_lines(effort: Effort, plane: Plane, history: month.Month, parquet: Path) -> list[Line]:
    """Scans batch by batch: of the month, and of rows with many fields of all types."""
    values = history.rows_per_entity * len(history.ids) * len(month.FIELDS)
    name = f"a compacted month, {history.days} days"
    span = (history.start_ns, history.end_ns)
    lines = _scan_lines(effort, name, plane, span, values, parquet)
    mixed, file = Plane.in_memory("bench"), DATA / "mixed.parquet"
    values = mixed_rows.fill(mixed, history.start_ns)
    pl.DataFrame(mixed.scan(*span)).write_parquet(file)
    return lines + _scan_lines(effort, "60 fields of all types, gaps", mixed, span, values, file)


def _scan_lines(
    effort: Effort, name: str, plane: Plane, span: tuple[int, int], values: int, file: Path
) -> list[Line]:
    day = pl.DataFrame(plane.scan(span[0], span[0] + month.DAY_NS, now_ns=span[1]))
    fields = [column.to_numpy() for column in day[:, 3:] if column.dtype == pl.Float64]
    count = pl.scan_parquet(file).select(pl.len()).collect().item()

    def scan() -> None:
        for batch in plane.scan(*span, now_ns=span[1]):
            pl.DataFrame(batch)

    def read() -> None:
        whole = pl.scan_parquet(file)
        for start in range(0, count, SLICE_ROWS):
            whole.slice(start, SLICE_ROWS).collect()

    def copy() -> None:
        for array in fields:
            array.copy()

    rates = alternate(
        min(effort.rounds, 5),
        {
            "scan": lambda: values / cpu_seconds(scan),
            "read": lambda: values / cpu_seconds(read),
            "copy": lambda: sum(map(len, fields)) / cpu_seconds(copy),
        },
    )
    figure = f"scan of {name}, values per CPU second"
    return [
        Line.at_least(
            figure, rates["scan"], "polars reading Parquet of these rows", rates["read"], 1
        ),
        Line(
            "the same", rate(rates["scan"]),
            f"copy of its doubles, a day: {rate(rates['copy'])}", rates["scan"] / rates["copy"],
            ">= 100 M/s", rates["scan"] >= 100e6,
        ),
    ]  # fmt: skip
