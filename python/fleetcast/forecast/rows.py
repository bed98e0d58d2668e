"""Samples of one entity in order of time, a column per field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Floats: TypeAlias = NDArray[np.float64]
Instants: TypeAlias = NDArray[np.int64]
"""Nanoseconds since 1970-01-01T00:00:00Z."""

NO_INSTANTS: Instants = np.empty(0, np.int64)


@dataclass(frozen=True)
class Rows:
    """Samples of one entity: `times_ns` [rows], not descending; each field [rows], NaN if null.

    Two rows of one instant are in the order in which they were written.
    """

    times_ns: Instants
    fields: Mapping[str, Floats]

    def field(self, name: str) -> tuple[Instants, Floats]:
        """Times and values of one field, of the rows in which it is a finite number."""
        values = self.fields.get(name)
        if values is None:
            return NO_INSTANTS, np.empty(0)
        finite = np.isfinite(values)
        if finite.all():
            return self.times_ns, values
        return self.times_ns[finite], values[finite]

    def before(self, time_ns: int) -> Rows:
        """The rows before an instant."""
        return self.between(np.iinfo(np.int64).min, time_ns)

    def between(self, start_ns: int, end_ns: int) -> Rows:
        """The rows from `start_ns` on, before `end_ns`."""
        start, end = np.searchsorted(self.times_ns, [start_ns, end_ns]).tolist()
        fields = {name: values[start:end] for name, values in self.fields.items()}
        return Rows(self.times_ns[start:end], fields)


NO_ROWS = Rows(NO_INSTANTS, {})


def rows_by_entity(frame: pl.DataFrame, fields: Sequence[str]) -> dict[str, Rows]:
    """Rows of each entity of a long frame.

    `frame` has `entity_id`, `time` (a datetime; without a zone it is UTC) and any of `fields` as
    numbers. Example: `polars.DataFrame(plane.series_frame(...))`.
    """
    if frame.is_empty():
        return {}
    present = [name for name in fields if name in frame.columns]
    if not _is_tidy(frame, present):
        time = pl.col("time").dt.replace_time_zone(None) if _zoned(frame) else pl.col("time")
        frame = frame.select(
            pl.col("entity_id").cast(pl.String),
            time.cast(pl.Datetime("ns")),
            *(pl.col(name).cast(pl.Float64) for name in present),
        )
    starts = _starts(frame)
    if not _in_order(frame, starts):
        frame = frame.sort("entity_id", "time", maintain_order=True)
        starts = _starts(frame)
    times = frame["time"].to_physical().to_numpy()
    columns = {name: _numbers(frame[name]) for name in present}
    names = [frame["entity_id"][start] for start in starts.tolist()]
    return {
        name: Rows(times[start:end], {field: v[start:end] for field, v in columns.items()})
        for name, start, end in zip(names, starts, [*starts[1:], len(times)], strict=True)
    }


def _is_tidy(frame: pl.DataFrame, fields: Sequence[str]) -> bool:
    """Returns true if no column needs a cast, as in the frames of a store."""
    kinds = frame.schema
    return (
        kinds["entity_id"] == pl.String
        and kinds["time"] in {pl.Datetime("ns"), pl.Datetime("ns", "UTC")}
        and all(kinds[name] == pl.Float64 for name in fields)
    )


def _numbers(column: pl.Series) -> Floats:
    return (column.fill_null(np.nan) if column.null_count() else column).to_numpy()


def _starts(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Index of the first row of each run of rows of one entity."""
    entities = frame["entity_id"]
    return np.flatnonzero(np.append(True, (entities[1:] != entities[:-1]).to_numpy()))


def _in_order(frame: pl.DataFrame, starts: NDArray[np.int64]) -> bool:
    """Returns true if each entity's rows are adjacent and in order of time, as from a store."""
    entities = frame["entity_id"]
    if len({entities[start] for start in starts.tolist()}) < len(starts):
        return False
    back = np.diff(frame["time"].to_physical().to_numpy()) < 0
    back[starts[1:] - 1] = False
    return not back.any()


def _zoned(frame: pl.DataFrame) -> bool:
    kind = frame.schema["time"]
    return isinstance(kind, pl.Datetime) and kind.time_zone not in {None, "UTC"}
