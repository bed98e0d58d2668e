"""Figures of runs as lines of CSV, and two runs side by side."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from fleetcast.bench.measuring import REPEATS_MIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEADER = ("database", "figure", "first", "second", "second / first", "")
# Figures that two runs are compared by, as paths in the document of a database.
_COMPARED = (
    "load.rows_per_second",
    "load.rows_per_cpu_second",
    "load.bytes_per_value",
    "load.latency.p50",
    "load.latency.p99",
    "open.latency.p99",
    "reads.newest.p50",
    "reads.window.p50",
)
_RATE = "load.rows_per_second"


def csv_of(document: Mapping[str, Any]) -> str:
    """Returns every figure of every database as a line: database, figure, value."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(("database", "figure", "value"))
    for name, each in document["databases"].items():
        lines.writerows((name, figure, value) for figure, value in _figures(each))
    return out.getvalue()


def compared(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Returns header and lines of a table of the databases that both runs measured.

    The last cell says if the intervals of the rate leave it open which run was faster.
    """
    lines = []
    for name, before in first["databases"].items():
        after = second["databases"].get(name)
        if after is None:
            continue
        old, new = dict(_figures(before)), dict(_figures(after))
        queries = [name for name in old if name.startswith("queries.") and name.endswith(".p50")]
        for figure in (*_COMPARED, *queries):
            if old.get(figure) and isinstance(new.get(figure), int | float):
                ratio = f"{new[figure] / old[figure]:.3f}"
                said = _verdict(before, after) if figure == _RATE else ""
                cells = [f"{old[figure]:,.6g}", f"{new[figure]:,.6g}", ratio, said]
                lines.append([name, figure, *cells])
    return _HEADER, lines


def _verdict(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    loads = [each["load"] for each in (before, after)]
    if min(len(load["rows_per_second_of_repeats"]) for load in loads) < REPEATS_MIN:
        return "few repeats"
    (low, high), (new_low, new_high) = (load["rows_per_second_interval"] for load in loads)
    return "differs" if high < new_low or new_high < low else "within the intervals"


def _figures(each: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the path and the value of each number and text; lists are left out."""
    for name, value in each.items():
        if isinstance(value, dict):
            yield from _figures(value, f"{path}{name}.")
        elif not isinstance(value, list | tuple):
            yield f"{path}{name}", value
