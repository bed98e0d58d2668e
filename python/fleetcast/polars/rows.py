"""Stored rows with the columns of a lazy frame, read for a query of polars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from fleetcast.engine import column_of_field, field_of_column
from fleetcast.polars.sources import COLUMNS, TYPES, columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.engine import FieldKind
    from fleetcast.polars.choice import Choice
    from fleetcast.polars.sources import RowSource

_ENTITY = "entity_id"
_FIRST: dict[str, pl.DataType] = {
    "time": pl.Datetime("ns", "UTC"),
    "measurement": pl.Categorical(),
    _ENTITY: pl.String(),
    "tags": pl.Map(pl.String(), pl.String()),
}


class StoredRows:
    """Rows of a source. `choice` makes the choice of all rows, which a query narrows."""

    def __init__(self, source: RowSource, choice: Callable[[], Choice]) -> None:
        self._source = source
        self._choice = choice
        fields = sorted(source.fields(choice()))
        names = [field for field, _ in fields]
        self._columns = {
            (field, kind): _name(field, kind, is_alone=names.count(field) == 1)
            for field, kind in fields
        }
        self.schema = _FIRST | {name: TYPES[kind] for (_, kind), name in self._columns.items()}

    def read(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yields the wanted columns of the first `n_rows` rows, if `predicate` holds for them."""
        wanted = list(self.schema) if with_columns is None else with_columns
        choice = self._choice()
        choice.rows_max = n_rows
        # With `n_rows` the rows are counted before they are chosen.
        if predicate is not None and n_rows is None and choice.narrow(predicate):
            predicate = None if self._source.is_exact else predicate
        needed = [*wanted]
        if predicate is not None:
            needed += {*predicate.meta.root_names()}.difference(wanted)
        fields = {field for (field, _), name in self._columns.items() if name in needed}
        rows_left = n_rows
        for scanned in self._source.frames(choice, [*fields]):
            batch = scanned if rows_left is None else scanned.head(rows_left)
            if rows_left is not None:
                rows_left -= batch.height
            # Built without a query of polars, whose threads wait for this frame.
            frame = pl.DataFrame([*self._in_form(batch, needed, choice)])
            if predicate is not None:
                frame = frame.lazy().filter(predicate).select(wanted).collect()
            yield frame
            if rows_left == 0:
                return

    def _in_form(
        self, batch: pl.DataFrame, needed: list[str], choice: Choice
    ) -> Iterator[pl.Series]:
        """Yields the needed columns of `schema`, made from those of a scan."""
        found = columns_of(batch)
        columns = {name: found[field] for field, name in self._columns.items() if field in found}
        for name in needed:
            if name in COLUMNS:
                yield batch.get_column(name)
            elif name == _ENTITY:
                yield self._entities(batch, choice).alias(name)
            elif name in columns:
                yield batch.get_column(columns[name]).alias(name)
            else:
                yield pl.Series(name, [None], self.schema[name]).new_from_index(0, batch.height)

    def _entities(self, batch: pl.DataFrame, choice: Choice) -> pl.Series:
        if self._source.is_exact and choice.entities is not None and len(choice.entities) == 1:
            return pl.Series([*choice.entities]).new_from_index(0, batch.height)
        return batch.get_column("tags").map.get(_ENTITY)


def _name(field: str, kind: FieldKind, *, is_alone: bool) -> str:
    """Returns the name of the column of a field, as a scan of all fields names it."""
    is_plain = is_alone and field not in _FIRST and field_of_column(field) == field
    return field if is_plain else column_of_field(field, kind)
