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
    """Directions of links in each minute: east, north, up, of length 1: [entities, minutes, 3].

    All links report their elevation and azimuth.
    """
    entities = [rows.between(first * MINUTE_NS, (first + count) * MINUTE_NS) for rows in entities]
    ends = np.cumsum([len(rows.times_ns) for rows in entities])[:-1]
    elevation, azimuth = (
        np.radians(np.concatenate([rows.fields[name] for rows in entities]))
        for name in ("elevation_deg", "azimuth_deg")
    )
    east = np.cos(elevation) * np.sin(azimuth)
    north = np.cos(elevation) * np.cos(azimuth)
    up = np.where(np.isnan(azimuth), np.nan, np.sin(elevation))
    parts = [np.split(part, ends) for part in (east, north, up)]
    mean = np.stack([_averaged(entities, part, first, count, 1) for part in parts], axis=-1)
    unit: Floats = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
    return unit


def _averaged(
    entities: Sequence[Rows],
    values: Sequence[Floats | None],
    first: int,
    count: int,
    minutes: int,
) -> Floats:
    result = np.full((len(entities), count), np.nan)
    cell_ns = minutes * MINUTE_NS
    bounds_ns = np.array([first, first + count]) * cell_ns
    for row, rows, mine in zip(result, entities, values, strict=True):
        if mine is None:
            continue
        start, end = rows.times_ns.searchsorted(bounds_ns)
        cell, sample = rows.times_ns[start:end] // cell_ns - first, mine[start:end]
        finite = np.isfinite(sample)
        if not finite.all():
            cell, sample = cell[finite], sample[finite]
        if (cell[1:] > cell[:-1]).all():  # a sample in each cell, as the engine's means are
            row[cell] = sample
        else:
            starts = np.flatnonzero(np.diff(cell, prepend=-1))
            row[cell[starts]] = np.add.reduceat(sample, starts) / np.diff(starts, append=len(cell))
    return result
