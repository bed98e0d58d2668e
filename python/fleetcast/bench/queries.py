"""Queries of a workload: reads of rows, and those of TSBS's "iot" that are made of such reads.

If drivers have no call for a query, the client works out the answer, for each database alike.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, NoReturn

from fleetcast.bench.rows import NS_PER_SECOND
from fleetcast.engine import time_ns
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from fleetcast.bench.driver import Session
    from fleetcast.bench.rows import RowNames
    from fleetcast.bench.truth import Truth
    from fleetcast.bench.workload_file import WorkloadFile

# Queries of TSBS by name, with the fields of their measurement.
_TSBS = {
    "last-loc": ("latitude", "longitude"),
    "low-fuel": ("fuel_state",),
    "stationary-trucks": ("velocity",),
}
_NAMES = ("newest", "window", *_TSBS)
_LOW_FUEL = 0.1
_STATIONARY_NS, _STATIONARY_VELOCITY = 600 * NS_PER_SECOND, 1.0
_LINE_BYTES_MAX, _QUERIES_MAX = 1 << 20, 1_000


@dataclass(frozen=True)
class TimedQuery:
    """One question to a database."""

    name: str
    measurement: str
    entities: tuple[str, ...] = ()
    start_ns: int = 0
    end_ns: int = 0

    def answer(
        self, session: Session | Truth, entities: Sequence[str], end_ns: int
    ) -> dict[str, Any]:
        """Returns the answer of a database, or of the truth, by entity.

        `entities` are all that have rows of the measurement, and no row is at `end_ns` or later.
        """
        if self.name == "window":
            found = session.window(self.measurement, self.entities, self.start_ns, self.end_ns)
            return {entity: rows for entity, rows in found.items() if rows}
        if self.name == "stationary-trucks":
            start_ns = end_ns - _STATIONARY_NS
            rows_of = session.window(self.measurement, entities, start_ns, end_ns)
            return dict(_stationary(rows_of))
        rows = session.newest(self.measurement, end_ns)
        if self.name == "newest":
            return rows
        names = _TSBS[self.name]
        values = {entity: [row.get(name) for name in names] for entity, (_, row) in rows.items()}
        if self.name == "low-fuel":
            return {
                e: fuel for e, (fuel,) in values.items() if fuel is not None and fuel <= _LOW_FUEL
            }
        return values

    def document(self) -> dict[str, object]:
        """Returns the query as the report has it."""
        return {"query": self.name, "measurement": self.measurement, "entities": len(self.entities)}


def _stationary(
    rows: Mapping[str, Mapping[int, Mapping[str, float]]],
) -> Iterator[tuple[str, float]]:
    for entity, times in rows.items():
        found = [row["velocity"] for _, row in sorted(times.items()) if "velocity" in row]
        if found and fmean(found) < _STATIONARY_VELOCITY:
            yield entity, fmean(found)


def read_queries(path: Path, names: RowNames, file: WorkloadFile | None) -> tuple[TimedQuery, ...]:
    """Reads queries, a JSON object on each line; their times are those of the workload's file.

    Raises `OSError`. Raises `OperatorError` with the line of a query that cannot be asked.
    """
    found = []
    with path.open("rb") as text:
        for number, line in enumerate(iter(lambda: text.readline(_LINE_BYTES_MAX + 1), b""), 1):
            if number > _QUERIES_MAX or len(line) > _LINE_BYTES_MAX:
                message = f"{path} has over {_QUERIES_MAX} lines, or {_LINE_BYTES_MAX} bytes in one"
                raise OperatorError(message)
            if line.strip():
                try:
                    found.append(_query(line, names, file))
                except ValueError as error:
                    message = f"{path}, line {number}: {error}"
                    raise OperatorError(message) from None
    if not found:
        message = f"{path} has no queries"
        raise OperatorError(message)
    return tuple(found)


def _query(line: bytes, names: RowNames, file: WorkloadFile | None) -> TimedQuery:
    """Reads one query. Raises `ValueError`."""
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError):
        _refuse("is not JSON")
    known = {name: name for name in names.fields} if file is None else file.stored_as
    moved_ns = 0 if file is None else file.moved_ns
    match value:
        case {"query": str(name), **rest} if name in _TSBS and not rest:
            return TimedQuery(name, _measurement_with(_TSBS[name], names))
        case {"query": "newest", "measurement": str(measurement), **rest} if not rest:
            return TimedQuery("newest", _stored_as(measurement, known))
        case {
            "query": "window",
            "measurement": str(measurement),
            "entities": [*entities],
            "start": str() | int() as start,
            "end": str() | int() as end,
            **rest,
        } if not rest and entities and all(isinstance(each, str) for each in entities):
            try:
                span = [time_ns(time) + moved_ns for time in (start, end)]
            except (TypeError, ValueError):
                _refuse("its start or end is no time")
            return TimedQuery("window", _stored_as(measurement, known), tuple(entities), *span)
    message = f"is no query: there are {', '.join(_NAMES)}, each with the members of its kind"
    raise ValueError(message)


def _stored_as(measurement: str, known: Mapping[str, str]) -> str:
    if measurement not in known:
        _refuse(f"no row of the workload is of the measurement {measurement}")
    return known[measurement]


def _measurement_with(fields: tuple[str, ...], names: RowNames) -> str:
    for measurement, found in names.fields.items():
        if {*fields} <= {*found}:
            return measurement
    message = f"no measurement of the workload has the field {' and '.join(fields)}"
    raise ValueError(message)


def _refuse(problem: str) -> NoReturn:
    raise ValueError(problem)
