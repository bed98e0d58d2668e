"""Places from which stored rows are read: a plane, or a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from fleetcast.engine import field_of_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fleetcast.client import Client
    from fleetcast.engine import FieldKind, Plane
    from fleetcast.polars.choice import Choice

TYPES: dict[FieldKind, pl.DataType] = {
    "float": pl.Float64(),
    "bool": pl.Boolean(),
    "text": pl.String(),
}
COLUMNS = ("time", "measurement", "tags")
"""The first columns of a scan, before those of the fields."""


class PlaneSource:
    """The rows of a plane."""

    is_exact = True
    """True if `frames` yields no rows but those of the choice."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def fields(self, choice: Choice) -> Iterable[tuple[str, FieldKind]]:
        """Returns name and type of each field that rows of the choice may have."""
        return {*self._plane.fields(choice.measurement)}

    def frames(self, choice: Choice, fields: list[str]) -> Iterator[pl.DataFrame]:
        """Yields at least the needed rows of the choice, with the columns of a scan."""
        rows = self._plane.scan(
            choice.start_ns,
            choice.end_ns,
            measurements=_listed(choice.measurements),
            entities=_listed(choice.entities),
            fields=fields,
            tags={key: [*values] for key, values in choice.tags.items()},
            every_row=True,
        )
        return map(pl.DataFrame, rows)


class ServiceSource:
    """The rows of the tenant of a client's key. Tags do not choose rows there."""

    is_exact = False

    def __init__(self, client: Client) -> None:
        self._client = client

    def fields(self, choice: Choice) -> Iterable[tuple[str, FieldKind]]:
        """See `PlaneSource`."""
        measurements = _listed(choice.measurements)
        start, end = choice.start_ns, choice.end_ns
        rows = self._client.scan(start=start, end=end, measurements=measurements, limit=0)
        return columns_of(rows)

    def frames(self, choice: Choice, fields: list[str]) -> Iterator[pl.DataFrame]:
        """See `PlaneSource`."""
        if choice.measurements == set() or choice.entities == set():
            return
        yield self._client.scan(
            start=choice.start_ns,
            end=choice.end_ns,
            measurements=_listed(choice.measurements),
            entity_ids=_listed(choice.entities),
            fields=fields,
            every_row=True,
            limit=choice.rows_max,
        )


RowSource: TypeAlias = PlaneSource | ServiceSource
"""A place from which stored rows are read."""


def columns_of(scanned: pl.DataFrame) -> dict[tuple[str, FieldKind], str]:
    """Returns the column of each field in the rows of a scan."""
    kinds = {dtype: kind for kind, dtype in TYPES.items()}
    return {
        (field_of_column(name), kinds[dtype]): name
        for name, dtype in scanned.schema.items()
        if name not in COLUMNS
    }


def _listed(names: set[str] | None) -> list[str] | None:
    return None if names is None else [*names]
