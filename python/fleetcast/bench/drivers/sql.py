"""Tables and statements of SQL databases: a table for each measurement, a column for each name.

Times are whole nanoseconds since 1970. Statements have `?` in place of values. Columns of tags and
fields are numbered, so that no name of a workload is read as SQL: the second field is `field_1`.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from fleetcast.bench.truth import WEEK_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleetcast.bench.driver import Fields, Samples
    from fleetcast.bench.rows import RowNames, SentRow

_BETWEEN = "time >= ? AND time < ?"


class Tables:
    """Tables for rows with some names."""

    def __init__(self, names: RowNames) -> None:
        self._names = names
        self._tags = ["entity_id", *(f"tag_{number}" for number in range(1, len(names.tags)))]
        self._fields = {
            measurement: [f"field_{number}" for number in range(len(fields))]
            for measurement, fields in names.fields.items()
        }

    def create(self, text: str, number: str) -> list[str]:
        """Returns statements that make the tables, with the database's own words for types."""
        return [
            f"CREATE TABLE IF NOT EXISTS {measurement} (time BIGINT NOT NULL, "
            + ", ".join([f"{tag} {text}" for tag in self._tags] + [f"{f} {number}" for f in fields])
            + ")"
            for measurement, fields in self._fields.items()
        ]

    def indexes(self) -> list[str]:
        """Returns statements that make the indexes, by which an entity's rows are found."""
        return [
            f"CREATE INDEX IF NOT EXISTS {m}_rows ON {m} (entity_id, time)" for m in self._fields
        ]

    def insert(self, measurement: str) -> str:
        """Returns the statement that stores a row."""
        marks = ", ".join("?" * (1 + len(self._tags) + len(self._fields[measurement])))
        return f"INSERT INTO {measurement} VALUES ({marks})"

    def cells(self, rows: Iterable[SentRow]) -> dict[str, list[list[Any]]]:
        """Returns the rows of a batch by table, with a cell for each column."""
        found: dict[str, list[list[Any]]] = {measurement: [] for measurement in self._fields}
        for row in rows:
            tags = map(dict(row.tags).get, self._names.tags)
            fields = map(dict(row.fields).get, self._names.fields[row.measurement])
            found[row.measurement].append([row.time_ns, *tags, *fields])
        return {measurement: rows_of for measurement, rows_of in found.items() if rows_of}

    def csv_texts(self, rows: Iterable[SentRow]) -> dict[str, bytes]:
        """Returns the rows of a batch by table, as the CSV that COPY reads."""
        texts = {}
        for measurement, found in self.cells(rows).items():
            text = io.StringIO()
            csv.writer(text).writerows(found)
            texts[measurement] = text.getvalue().encode()
        return texts

    def newest(self, measurement: str) -> str:
        """Returns the statement for the newest row of every entity within a week.

        `newest_of` reads its rows. Its values are the first time of the week and the time after its
        last.
        """
        named = ", ".join(self._fields[measurement])
        numbered = "row_number() OVER (PARTITION BY entity_id ORDER BY time DESC) AS nth"
        inner = f"SELECT entity_id, time, {named}, {numbered} FROM {measurement} WHERE {_BETWEEN}"
        return f"SELECT entity_id, time, {named} FROM ({inner}) AS numbered WHERE nth = 1"

    def window(self, measurement: str, entities: int) -> str:
        """Returns the statement for rows of some entities.

        Its values are the entities, and the first time and the time after the last.
        """
        named, marks = ", ".join(self._fields[measurement]), ", ".join("?" * entities)
        return (
            f"SELECT entity_id, time, {named} FROM {measurement} "
            f"WHERE entity_id IN ({marks}) AND {_BETWEEN}"
        )

    def newest_of(
        self, measurement: str, rows: Iterable[Sequence[Any]]
    ) -> dict[str, tuple[int, Fields]]:
        """Returns the answer to `newest`, by entity."""
        return {row[0]: (row[1], self._fields_of(measurement, row[2:])) for row in rows}

    def samples_of(self, measurement: str, rows: Iterable[Sequence[Any]]) -> Samples:
        """Returns the answer to `window`, by entity."""
        found: Samples = {}
        for row in rows:
            found.setdefault(row[0], {})[row[1]] = self._fields_of(measurement, row[2:])
        return found

    def _fields_of(self, measurement: str, values: Sequence[float | None]) -> Fields:
        """Returns the fields whose value is not null."""
        named = zip(self._names.fields[measurement], values, strict=True)
        return {name: value for name, value in named if value is not None}


class SqlSession(ABC):
    """Reads of tables; see `Session`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @abstractmethod
    def ask(self, statement: str, values: Sequence[object] = ()) -> Iterable[Sequence[Any]]:
        """Returns the rows of an answer."""

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        rows = self.ask(self._tables.newest(measurement), [end_ns - WEEK_NS, end_ns])
        return self._tables.newest_of(measurement, rows)

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        statement = self._tables.window(measurement, len(entities))
        return self._tables.samples_of(
            measurement, self.ask(statement, [*entities, start_ns, end_ns])
        )
