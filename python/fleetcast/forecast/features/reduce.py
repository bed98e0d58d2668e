"""Sums over the last axis that skip missing values.

Each row of a matrix is reduced by itself, so that an answer does not depend on the other rows of
the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats

_FEW = 7
"""Numpy adds up to so many columns one after the other."""


def windows(values: Floats, ends: NDArray[np.int64], length: int) -> Floats:
    """The `length` values before each of `ends`: [..., ends, length]; NaN outside `values`.

    Example: of 1, 2, 3, end 2 and length 3 give NaN, 1, 2.
    """
    ends = np.clip(ends, 0, values.shape[-1])
    if ends.min(initial=length) < length:
        missing = np.full((*values.shape[:-1], length), np.nan)
        values, ends = np.concatenate([missing, values], axis=-1), ends + length
    return sliding_window_view(values, length, axis=-1)[..., ends - length, :]


def at(values: Floats, indexes: NDArray[np.int64]) -> Floats:
    """Values [..., values] at `indexes` of any shape: [..., *indexes]; NaN outside `values`."""
    inside = (indexes >= 0) & (indexes < values.shape[-1])
    return np.where(inside, values[..., np.where(inside, indexes, 0)], np.nan)


def mean(values: Floats) -> Floats:
    """Mean of the finite values; NaN if there is no finite value."""
    values = np.ascontiguousarray(values)  # numpy sums in an order that follows the layout
    total = _sum(values)
    if not np.isnan(total).any() and values.shape[-1]:
        whole: Floats = total / values.shape[-1]
        return whole
    present = ~np.isnan(values)
    count = present.sum(-1)
    total = _sum(np.where(present, values, 0.0))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def spread(values: Floats) -> Floats:
    """Standard deviation of the finite values; NaN if there is no finite value."""
    centre = mean(values)
    return np.sqrt(mean((values - centre[..., None]) ** 2))


def quantiles(values: Floats, levels: Sequence[float]) -> Floats:
    """Quantiles of the finite values [..., levels], linear between neighbours.

    NaN if there is no finite value. Example: the median of 1, NaN and 2 is 1.5.
    """
    ordered = np.sort(values, axis=-1)  # NaN come last
    if values.shape[-1] and not np.isnan(ordered[..., -1]).any():
        count = np.full(values.shape[:-1], values.shape[-1])
    else:
        count = (~np.isnan(ordered)).sum(-1)
    position = np.maximum(count - 1, 0)[..., None] * np.asarray(levels)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0)[..., None])
    below = np.take_along_axis(ordered, low, -1)
    above = np.take_along_axis(ordered, high, -1)
    weight = position - low
    return np.where(weight > 0, below + (above - below) * weight, below)


def newest(values: Floats) -> Floats:
    """The last present value; NaN if there is no value."""
    last = values[..., 0].copy()
    for column in range(1, values.shape[-1]):
        np.copyto(last, values[..., column], where=~np.isnan(values[..., column]))
    return last


def _sum(values: Floats) -> Floats:
    """Sums in the order of numpy, for which few columns are slow."""
    if not 0 < values.shape[-1] <= _FEW:
        total: Floats = values.sum(-1)
        return total
    total = values[..., 0] + 0.0
    for column in range(1, values.shape[-1]):
        total += values[..., column]
    return total
