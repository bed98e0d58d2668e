"""Links' samples as means of minutes, counted from the epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import MINUTE_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.rows import Floats, Rows

BLOCK = 5
"""Minutes of a block, aligned to the epoch."""


def averaged(entities: Sequence[Rows], field: str, first: int, count: int) -> Floats:
    """Means of a field's samples in `count` minutes: [entities, minutes].

    Minute `first` is counted from the epoch. NaN if a minute has no sample.
    """
    result = np.full((len(entities), count), np.nan)
    bounds_ns = np.array([first, first + count]) * MINUTE_NS
    for row, rows in zip(result, entities, strict=True):
        times, values = rows.field(field)
        start, end = times.searchsorted(bounds_ns)
        minute, sample = times[start:end] // MINUTE_NS - first, values[start:end]
        starts = np.flatnonzero(np.diff(minute, prepend=-1))
        if len(starts):
            counts = np.diff(starts, append=len(minute))
            row[minute[starts]] = np.add.reduceat(sample, starts) / counts
    return result
