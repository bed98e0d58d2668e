"""Sums over the last axis that step over what is missing.

Each row of a matrix is reduced by itself, so that an answer does not depend on which other rows
were asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats


def windows(values: Floats, ends: NDArray[np.int64], length: int) -> Floats:
    """The `length` values before each of `ends`: [ends, length]; NaN outside `values`."""
    padded = np.concatenate([np.full(length, np.nan), values])
    last = len(values)
    return sliding_window_view(padded, length)[np.clip(ends, 0, last)]


def at(values: Floats, places: NDArray[np.int64]) -> Floats:
    """Values at `places` of any shape; NaN outside `values`."""
    inside = (places >= 0) & (places < len(values))
    result = np.full(places.shape, np.nan)
    result[inside] = values[places[inside]]
    return result


def mean(values: Floats) -> Floats:
    """Mean of the finite values; NaN where there is none."""
    values = np.ascontiguousarray(values)  # numpy sums in an order that follows the layout
    present = ~np.isnan(values)
    count = present.sum(-1)
    total = np.where(present, values, 0.0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def spread(values: Floats) -> Floats:
    """Standard deviation of the finite values; NaN where there is none."""
    centre = mean(values)
    return np.sqrt(mean((values - centre[..., None]) ** 2))


def quantiles(values: Floats, levels: Sequence[float]) -> Floats:
    """Quantiles of the finite values, linear between neighbours: [..., levels]; NaN without any."""
    ordered = np.sort(values, axis=-1)  # NaN come last
    count = (~np.isnan(values)).sum(-1)
    position = np.maximum(count - 1, 0)[..., None] * np.asarray(levels)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0)[..., None])
    below = np.take_along_axis(ordered, low, -1)
    above = np.take_along_axis(ordered, high, -1)
    weight = position - low
    return np.where(weight > 0, below + (above - below) * weight, below)


def filled_forward(values: Floats, steps_max: int) -> Floats:
    """Each value, or the newest one at most `steps_max` steps before it."""
    steps = np.arange(len(values))
    newest = np.maximum.accumulate(np.where(np.isnan(values), -1, steps))
    result = values[np.maximum(newest, 0)]
    result[(newest < 0) | (steps - newest > steps_max)] = np.nan
    return result
