"""Stretches the bands of a network until they cover their share, on a separate period.

The method is split conformal prediction (Vovk, Gammerman and Shafer, 2005; Romano, Patterson and
Candes, 2019). Each horizon and quantile has one factor on the gaps of the network, so order is
kept. The lower gap of pools that are idle at times has a separate factor (Mondrian; Vovk and
others, 2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.training.network import softplus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats

_FACTOR_MIN, _FACTOR_MAX = 0.02, 2.0
_SAMPLES_MIN = 500


@dataclass(frozen=True)
class Calibration:
    """Per horizon: the shift of the middle in shares of the band, and factors of both gaps.

    `lower` is [2, horizons]: for most series, and for the separate series. The others are
    [horizons].
    """

    shift: Floats
    lower: Floats
    upper: Floats


def calibrate(
    heads: NDArray[np.floating],
    truth: Floats,
    weight: Floats,
    apart: NDArray[np.bool_],
    levels: Sequence[float],
    floor: float = -np.inf,
) -> Calibration:
    """Calibrates from `heads` [samples, horizons, 3] and `truth` [samples, horizons] on one scale.

    `weight` [samples] says how much each sample counts. `apart` [samples] marks samples that are
    calibrated separately, unless they are few. No prediction is below `floor`. A truth at or below
    `floor` counts half as below any quantile (the mid-distribution function), as far as
    `_FACTOR_MAX` allows.
    """
    low, _, high = levels
    gaps = softplus(heads[..., 1]), softplus(heads[..., 2])
    horizons = truth.shape[1]
    shift, below, above = np.empty(horizons), np.empty((2, horizons)), np.empty(horizons)
    for h in range(horizons):
        known = ~np.isnan(truth[:, h])
        y, w, kind = truth[known, h], weight[known], apart[known]
        under, over = (gap[known, h] for gap in gaps)
        middle = heads[known, h, 0]
        shift[h] = _quantile((y - middle) / (under + over), w, 0.5)
        centre = middle + shift[h] * (under + over)
        above[h] = max(_quantile((y - centre) / over, w, high), _FACTOR_MIN)
        for group, mine in enumerate((~kind, kind)):
            used = mine if mine.sum() >= _SAMPLES_MIN else np.ones_like(mine)
            needed = ((centre - y) / under)[used]
            below[group, h] = _lower(needed, w[used], y[used] <= floor, 1 - low)
    return Calibration(shift, below, above)


def _lower(factors: Floats, weight: Floats, tied: NDArray[np.bool_], level: float) -> float:
    halves = np.concatenate([np.where(tied, weight / 2, weight), weight[tied] / 2])
    factors = np.concatenate([factors, np.full(tied.sum(), np.inf)])
    return float(np.clip(_quantile(factors, halves, level), _FACTOR_MIN, _FACTOR_MAX))


def _quantile(values: Floats, weight: Floats, level: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    index = int(np.searchsorted(reached, level * reached[-1]))
    return float(values[order[min(index, len(order) - 1)]])
