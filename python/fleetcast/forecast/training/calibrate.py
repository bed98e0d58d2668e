"""Stretches the bands of a network until they hold what they say, on a period of its own.

Split conformal prediction (Vovk, Gammerman and Shafer, 2005; Romano, Patterson and Candes, 2019)
with one factor per horizon and quantile, on the gaps that the network gives: order is kept.
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

_FACTOR_MIN = 0.02


@dataclass(frozen=True)
class Calibration:
    """Per horizon: by how much of the band the middle moves, and factors of both gaps."""

    shift: Floats
    lower: Floats
    upper: Floats


def calibrate(
    heads: NDArray[np.floating], truth: Floats, weight: Floats, levels: Sequence[float]
) -> Calibration:
    """From `heads` [samples, horizons, 3], and `truth` [samples, horizons] on the same scale.

    `weight` [samples] says how much each counts.
    """
    low, _, high = levels
    lower, upper = softplus(heads[..., 1]), softplus(heads[..., 2])
    shift, below, above = (np.empty(truth.shape[1]) for _ in range(3))
    for h in range(truth.shape[1]):
        known = ~np.isnan(truth[:, h])
        y, w = truth[known, h], weight[known]
        under, over, middle = lower[known, h], upper[known, h], heads[known, h, 0]
        band = under + over
        shift[h] = _quantile((y - middle) / band, w, 0.5)
        centre = middle + shift[h] * band
        below[h] = max(_quantile((centre - y) / under, w, 1 - low), _FACTOR_MIN)
        above[h] = max(_quantile((y - centre) / over, w, high), _FACTOR_MIN)
    return Calibration(shift, below, above)


def _quantile(values: Floats, weight: Floats, level: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    place = int(np.searchsorted(reached, level * reached[-1]))
    return float(values[order[min(place, len(order) - 1)]])
