"""Links' samples as means per minute, or per hour, counted from the epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import MINUTE_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.rows import Floats, Rows

BLOCK = 5
"""Minutes of a block, aligned to the epoch. Windows of hours are computed from blocks."""
HOUR = 60


def averaged(
    entities: Sequence[Rows], field: str, first: int, count: int, minutes: int = 1
) -> Floats:
    """Means of a field's samples in `count` cells of `minutes` minutes: [entities, cells].

    Cell `first` is counted from the epoch. NaN if a cell has no sample. Example: with 60 minutes,
    cell 1 covers 01:00 to 02:00 on 1970-01-01.
    """
    return _averaged(entities, [rows.fields.get(field) for rows in entities], first, count, minutes)


def directions(entities: Sequence[Rows], first: int, count: int) -> Floats:
    """Directions of links in each minute: east, north, up, of length 1: [entities, minutes, 3]."""
    east: list[Floats | None] = []
    north: list[Floats | None] = []
    up: list[Floats | None] = []
    entities = [rows.between(first * MINUTE_NS, (first + count) * MINUTE_NS) for rows in entities]
    for rows in entities:
        elevation, azimuth = (rows.fields.get(n) for n in ("elevation_deg", "azimuth_deg"))
        if elevation is None or azimuth is None:
            for part in (east, north, up):
                part.append(None)
        else:
            elevation, azimuth = np.radians(elevation), np.radians(azimuth)
            east.append(np.cos(elevation) * np.sin(azimuth))
            north.append(np.cos(elevation) * np.cos(azimuth))
            up.append(np.where(np.isnan(azimuth), np.nan, np.sin(elevation)))
    mean = np.stack(
        [_averaged(entities, part, first, count, 1) for part in (east, north, up)], axis=-1
    )
    unit: Floats = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
    return unit


def _averaged(
    entities: Sequence[Rows],
    values: Sequence[Floats | None],
    first: int,
    count: int,
    minutes: int,
) -> Floats:
    result = np.full(len(entities) * count, np.nan)
    cell_ns = minutes * MINUTE_NS
    cells, samples = [], []
    for entity, (rows, mine) in enumerate(zip(entities, values, strict=True)):
        if mine is not None:
            start, end = np.searchsorted(
                rows.times_ns, [first * cell_ns, (first + count) * cell_ns]
            )
            cells.append(rows.times_ns[start:end] // cell_ns + (entity * count - first))
            samples.append(mine[start:end])
    if cells:
        cell, sample = np.concatenate(cells), np.concatenate(samples)
        finite = np.isfinite(sample)
        if not finite.all():
            cell, sample = cell[finite], sample[finite]
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        if len(starts) == len(cell):  # a sample in each cell, as the engine's means are
            result[cell] = sample
        else:
            sums = np.add.reduceat(sample, starts)
            result[cell[starts]] = sums / np.diff(starts, append=len(cell))
    return result.reshape(len(entities), count)
