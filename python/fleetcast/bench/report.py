"""One document of all databases that were measured, its table for a terminal, and its page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fleetcast.bench.drivers import driver
from fleetcast.bench.faults import fault_of
from fleetcast.bench.floors import floors
from fleetcast.bench.measuring import measure
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from fleetcast.bench.workload import Workload

_HEADER = (
    "database",
    "rows/s",
    "rows/CPU s",
    "p50 ms",
    "p99 ms",
    "B/value",
    "answers",
    "synced",
    "lost",
)


def measured(
    databases: Sequence[str],
    work: Path,
    workload: Workload,
    say: Callable[[str], object],
) -> dict[str, Any]:
    """Measures databases one after the other, each in its own folder below `work`.

    A database that fails is in the report with its fault. Raises `OperatorError` for an unknown
    name or option.
    """
    named = [_named(text) for text in databases]
    chosen = [
        driver(name, work / f"{at}-{name}", options, workload.names)
        for at, (name, options) in enumerate(named)
    ]
    say("the machine's own floors")
    document: dict[str, Any] = {
        "fleetcast": version("fleetcast"),
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "workload": workload.document(),
        "floors": floors(work),
        "databases": {},
    }
    for (name, _), each in zip(named, chosen, strict=True):
        title, number = name, 2
        while title in document["databases"]:
            title, number = f"{name} {number}", number + 1

        def tell(line: str, title: str = title) -> None:
            say(f"{title} {line}")

        try:
            document["databases"][title] = measure(each, workload, tell)
        except Exception as error:  # noqa: BLE001 - the other databases go on
            fault = fault_of(error)
            say(f"{title}: {fault}")
            document["databases"][title] = {"about": each.about, "fault": fault}
    return document


def _named(text: str) -> tuple[str, dict[str, str]]:
    """Splits `name:key=value,key=value` into name and options. Raises `OperatorError`."""
    name, _, given = text.partition(":")
    options = {}
    for part in given.split(",") if given else ():
        key, found, value = part.partition("=")
        if not found:
            message = f"{text}: options are written key=value, with commas between"
            raise OperatorError(message)
        options[key] = value
    return name, options


def rows_of(document: Mapping[str, Any]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Returns header and lines of a table."""
    return _HEADER, [_cells(name, each) for name, each in document["databases"].items()]


def _cells(name: str, each: Mapping[str, Any]) -> list[str]:
    if "fault" in each:
        return [name, each["fault"][:60], *[""] * (len(_HEADER) - 2)]
    load, kill = each["load"], each.get("kill", {})
    return [
        name,
        f"{load['rows_per_second']:,.0f}",
        _or_unknown(load["rows_per_cpu_second"], ",.0f"),
        f"{1000 * load['latency']['p50']:.1f}",
        f"{1000 * load['latency']['p99']:.1f}",
        _or_unknown(load["bytes_per_value"], ".2f"),
        answers_word(each.get("answers")),
        each["synced"]["verdict"].partition(":")[0],
        _or_unknown(kill.get("lost_rows"), ",d"),
    ]


def answers_word(answers: Mapping[str, int] | None) -> str:
    """Returns `right`, or the number of rows that differ from the written rows."""
    if answers is None:
        return "not asked"
    off = sum(
        answers[name] for name in ("missing", "unknown", "wrong", "newest_wrong", "queries_wrong")
    )
    return f"{off:,} wrong" if off else "right"


def _or_unknown(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)


def page(document: Mapping[str, Any]) -> str:
    """Returns the document as one page, which loads no other file."""
    template = files("fleetcast.bench").joinpath("page.html").read_text(encoding="utf-8")
    # Escapes `</`, so that the document cannot end the script that holds it.
    return template.replace("/*DOCUMENT*/ null", json.dumps(document).replace("</", "<\\/"))
