"""Tables and statements of SQL databases: a table for each measurement, a column for each name.

Times are whole nanoseconds since 1970. Statements have `?` in place of values.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from fleetcast.bench.trucks import FIELDS, TAGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleetcast.bench.driver import Fields, Samples
    from fleetcast.bench.trucks import TruckRow

NS_PER_SECOND = 1_000_000_000
COLUMNS = {measurement: ("time", *TAGS, *fields) for measurement, fields in FIELDS.items()}


def create(text: str, number: str) -> list[str]:
    """Returns statements that make the tables, with the database's own words for types."""
    return [
        f"CREATE TABLE IF NOT EXISTS {measurement} (time BIGINT NOT NULL, "
        + ", ".join([f"{tag} {text}" for tag in TAGS] + [f"{field} {number}" for field in fields])
        + ")"
        for measurement, fields in FIELDS.items()
    ]


def indexes() -> list[str]:
    """Returns statements that make the indexes, by which an entity's rows are found."""
    return [f"CREATE INDEX IF NOT EXISTS {m}_rows ON {m} (entity_id, time)" for m in FIELDS]


def insert(measurement: str) -> str:
    """Returns the statement that stores a row."""
    marks = ", ".join("?" * len(COLUMNS[measurement]))
    return f"INSERT INTO {measurement} VALUES ({marks})"


def cells(rows: Iterable[TruckRow]) -> dict[str, list[list[Any]]]:
    """Returns the rows of a batch by table, with a cell for each column."""
    found: dict[str, list[list[Any]]] = {measurement: [] for measurement in FIELDS}
    for row in rows:
        given: dict[str, Any] = {**dict(row.tags), **dict(row.fields)}
        names = COLUMNS[row.measurement][1:]
        found[row.measurement].append([row.time * NS_PER_SECOND, *map(given.get, names)])
    return {measurement: rows_of for measurement, rows_of in found.items() if rows_of}


def csv_texts(rows: Iterable[TruckRow]) -> dict[str, bytes]:
    """Returns the rows of a batch by table, as the CSV that COPY reads."""
    texts = {}
    for measurement, found in cells(rows).items():
        text = io.StringIO()
        csv.writer(text).writerows(found)
        texts[measurement] = text.getvalue().encode()
    return texts


def newest(measurement: str) -> str:
    """Returns the statement for the newest row of every entity; read its rows with `newest_of`."""
    named = ", ".join(FIELDS[measurement])
    numbered = "row_number() OVER (PARTITION BY entity_id ORDER BY time DESC) AS nth"
    inner = f"SELECT entity_id, time, {named}, {numbered} FROM {measurement}"
    return f"SELECT entity_id, time, {named} FROM ({inner}) AS numbered WHERE nth = 1"


def window(measurement: str, entities: int) -> str:
    """Returns the statement for rows of some entities; its values come from `bounds`."""
    named, marks = ", ".join(FIELDS[measurement]), ", ".join("?" * entities)
    return (
        f"SELECT entity_id, time, {named} FROM {measurement} "
        f"WHERE entity_id IN ({marks}) AND time >= ? AND time < ?"
    )


def bounds(entities: Sequence[str], start: int, end: int) -> list[Any]:
    """Returns the values for `window`: the entities, start and end. The bounds are in seconds."""
    return [*entities, start * NS_PER_SECOND, end * NS_PER_SECOND]


def newest_of(measurement: str, rows: Iterable[Sequence[Any]]) -> dict[str, tuple[int, Fields]]:
    """Returns the answer to `newest`, by entity."""
    return {row[0]: (row[1] // NS_PER_SECOND, fields_of(measurement, row[2:])) for row in rows}


def samples_of(measurement: str, rows: Iterable[Sequence[Any]]) -> Samples:
    """Returns the answer to `window`, by entity."""
    found: Samples = {}
    for row in rows:
        times = found.setdefault(row[0], {})
        times[row[1] // NS_PER_SECOND] = fields_of(measurement, row[2:])
    return found


def fields_of(measurement: str, values: Sequence[float | None]) -> Fields:
    """Returns the fields whose value is not null."""
    named = zip(FIELDS[measurement], values, strict=True)
    return {name: value for name, value in named if value is not None}
