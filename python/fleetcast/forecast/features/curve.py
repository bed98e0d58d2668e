"""A link's curve: its values of the last day over the elevation that it had.

A satellite passes again at another time, and the link then sees much the same at the same
elevation. Example: with 40 dB at 20 degrees yesterday and 45 dB at 30, a link at 20 degrees that
will be at 30 in half an hour can expect 5 dB more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.features.minutes import HOUR, averaged
from fleetcast.forecast.features.reduce import mean, windows
from fleetcast.forecast.features.view import Feature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Rows

ELEVATION = "elevation_deg"
_OLDEST, _NEWEST = 25, 3
"""Whole hours before the hour of the issue time. The newest two are left out, as the same pass."""
_WINDOW = "hours 3 to 25 before, minutes at like elevation"
_BIN_DEG = 2.0
_BINS = round(90 / _BIN_DEG)
_MIDDLES_DEG = (np.arange(_BINS) + 0.5) * _BIN_DEG
_KERNEL_DEG = 1.5
"""Deviation of the kernel by which neighbouring elevations count."""
_MINUTES_MIN = 1.0
"""Minutes, weighted by the kernel, from which a curve is known at an elevation."""
_MINUTES_MANY = 10.0
"""Minutes that are a support of one half."""
_RECENT_MINUTES = 15

OFFSET = Feature("curve_offset", "dB", f"newest {_RECENT_MINUTES}m less {_WINDOW}", "change")


def of_horizon(horizon_minutes: int) -> list[Feature]:
    """The features of a horizon, in the order of the columns that `columns` returns."""
    return [
        Feature(f"curve_{horizon_minutes}m", "dB", _WINDOW, "level"),
        Feature(f"curve_moved_{horizon_minutes}m", "dB", f"{_WINDOW}, and offset", "level"),
        Feature(f"curve_change_{horizon_minutes}m", "dB", _WINDOW, "change"),
        Feature(f"curve_spread_{horizon_minutes}m", "dB", _WINDOW, "scale"),
        Feature(f"curve_support_{horizon_minutes}m", "1", _WINDOW, "plain"),
    ]


def columns(
    entities: Sequence[Rows],
    minutes: Floats,
    first: int,
    now: NDArray[np.int64],
    path_deg: Floats,
) -> tuple[Floats, Floats]:
    """Columns [entities, times, horizons, 5], and those of `OFFSET` [entities, times].

    `minutes` [entities, minutes] are the signal from minute `first` on, which begins an hour. `now`
    are the issue times in minutes. `path_deg` [entities, times, 1 + horizons] are the elevations at
    the issue times and at the horizons.
    """
    known = ~np.isnan(path_deg[..., 0])
    found = np.full((*known.shape, path_deg.shape[2] - 1, 5), np.nan)
    offset = np.full(known.shape, np.nan)
    directed = np.flatnonzero(known.any(-1)).tolist()
    if directed:
        elevation = averaged([entities[i] for i in directed], ELEVATION, first, minutes.shape[1])
        found[directed], offset[directed] = _columns(
            minutes[directed], elevation, now - first, path_deg[directed]
        )
    return found, np.where(known, offset, np.nan)


def _columns(
    minutes: Floats, elevation: Floats, now: NDArray[np.int64], path_deg: Floats
) -> tuple[Floats, Floats]:
    sums = _sums(minutes, elevation, now // HOUR)
    recent, at = (windows(values, now, _RECENT_MINUTES) for values in (minutes, elevation))
    offset = mean(recent - _smoothed(sums, at)[1])
    count, level, spread = _smoothed(sums, path_deg)
    later = level[..., 1:]
    return np.stack(
        [
            later,
            later + offset[..., None],
            later - level[..., :1],
            spread[..., 1:],
            (count / (count + _MINUTES_MANY))[..., 1:],
        ],
        axis=-1,
    ), offset


def _sums(minutes: Floats, elevation: Floats, hours: NDArray[np.int64]) -> Floats:
    """Counts, sums and sums of squares of the curve's minutes [3, entities, times, bins]."""
    entities, count = len(minutes), -(-minutes.shape[1] // HOUR)
    first_bin = np.arange(minutes.shape[1]) // HOUR * _BINS
    by_hour = np.empty((3, entities, count * _BINS))
    for entity in range(entities):  # one by one: a day of one link stays in the cache
        known = np.flatnonzero((elevation[entity] > 0) & ~np.isnan(minutes[entity]))
        values, angles = minutes[entity, known], elevation[entity, known]
        cell = first_bin[known] + np.minimum(angles / _BIN_DEG, _BINS - 1).astype(np.int64)
        for power, weights in enumerate((None, values, values * values)):
            by_hour[power, entity] = np.bincount(cell, weights, count * _BINS)
    by_hour = by_hour.reshape(3, entities, count, _BINS)
    total = np.zeros((3, entities, len(hours), _BINS))
    for back in range(_NEWEST, _OLDEST + 1):  # one by one: a sum is not to depend on other times
        total += by_hour[:, :, hours - back]
    return total


def _smoothed(sums: Floats, asked_deg: Floats) -> tuple[Floats, Floats, Floats]:
    """Minutes, mean and deviation at elevations [entities, times, asked]; NaN if unknown."""
    apart = (asked_deg[..., None] - _MIDDLES_DEG) / _KERNEL_DEG
    weights = np.exp(-0.5 * apart * apart)
    count, total, square = ((weights * one[:, :, None]).sum(-1) for one in sums)
    divisor = np.where(count >= _MINUTES_MIN, count, np.nan)
    level = total / divisor
    return count, level, np.sqrt(np.maximum(square / divisor - level * level, 0.0))
