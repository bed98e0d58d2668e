"""The rows that a database must have, and the rows that its answers lack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.bench.rows import NS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleetcast.bench.driver import Fields, Samples, Session
    from fleetcast.bench.rows import RowNames, SentRow

_ENTITIES = 64  # in one question
WEEK_NS = 7 * 86_400 * NS_PER_SECOND


@dataclass
class Difference:
    """Rows by how an answer differs from the truth."""

    compared: int = 0
    missing: int = 0
    unknown: int = 0
    """Rows that were never written."""
    wrong: int = 0
    newest_wrong: int = 0


class Truth:
    """Rows that were written, by measurement, entity and time."""

    def __init__(self, names: RowNames) -> None:
        self._rows: dict[str, Samples] = {measurement: {} for measurement in names.fields}

    def add(self, rows: Iterable[SentRow]) -> None:
        """Adds rows that were written."""
        for row in rows:
            fields = {name: float(value) for name, value in row.fields}
            self._rows[row.measurement].setdefault(row.entity, {})[row.time_ns] = fields

    def entities(self, measurement: str) -> list[str]:
        """Returns the names of all entities with rows."""
        return sorted(self._rows[measurement])

    def span(self) -> tuple[int, int]:
        """Returns the first time, and the second after that of the last time, in nanoseconds."""
        times = [time for m in self._rows.values() for rows in m.values() for time in rows]
        return min(times), (max(times) // NS_PER_SECOND + 1) * NS_PER_SECOND

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        """See `Session`."""
        newest = ((entity, max(rows), rows) for entity, rows in self._rows[measurement].items())
        return {
            entity: (time, rows[time]) for entity, time, rows in newest if time >= end_ns - WEEK_NS
        }

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        """See `Session`; entities without rows are left out."""
        rows = self._rows[measurement]
        found = {
            entity: {time: row for time, row in rows[entity].items() if start_ns <= time < end_ns}
            for entity in entities
            if entity in rows
        }
        return {entity: times for entity, times in found.items() if times}

    def compare(self, session: Session) -> Difference:
        """Compares every row, and every newest row, with the answers of a database."""
        found = Difference()
        start, end = self.span()
        for measurement, rows in self._rows.items():
            names = self.entities(measurement)
            answer = _window(session, measurement, names, start, end)
            for entity in names:
                _count(rows[entity], answer.get(entity, {}), found)
            newest, wanted = session.newest(measurement, end), self.newest(measurement, end)
            found.newest_wrong += sum(
                newest.get(entity) != sample for entity, sample in wanted.items()
            )
        return found

    def has(self, session: Session, rows: Iterable[SentRow]) -> list[bool]:
        """Returns for each row whether the database has it with all its values."""
        asked = list(rows)
        wanted = {(row.measurement, row.entity) for row in asked}
        start, end = min(row.time_ns for row in asked), max(row.time_ns for row in asked) + 1
        answers = {}
        for measurement in self._rows:
            names = sorted(entity for m, entity in wanted if m == measurement)
            answers[measurement] = _window(session, measurement, names, start, end)
        return [
            answers[row.measurement].get(row.entity, {}).get(row.time_ns)
            == {name: float(value) for name, value in row.fields}
            for row in asked
        ]


def _window(
    session: Session, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
) -> Samples:
    """Asks for the rows of any number of entities."""
    found: Samples = {}
    for first in range(0, len(entities), _ENTITIES):
        part = entities[first : first + _ENTITIES]
        found |= session.window(measurement, part, start_ns, end_ns)
    return found


def _count(wanted: dict[int, Fields], got: dict[int, Fields], found: Difference) -> None:
    found.compared += len(wanted)
    found.missing += len(wanted.keys() - got.keys())
    found.unknown += len(got.keys() - wanted.keys())
    found.wrong += sum(got[time] != wanted[time] for time in wanted.keys() & got.keys())
