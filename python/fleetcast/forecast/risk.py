"""The probability that a value lies below a threshold, from the quantiles of a forecast.

From the median to an outer quantile the probability falls as a stretched exponential. Beyond it
lies a generalized Pareto tail (Pickands, 1975). The constants are fitted on calibration periods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND, SNR

if TYPE_CHECKING:
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Floats


@dataclass(frozen=True)
class _Side:
    """Shape of the distribution on one side of the median, in gaps from there to the quantile."""

    stretch: float
    tail_shape: float
    tail_scale: float


_LOWER = {SNR: _Side(1.0, 0.5, 1.2), DEMAND: _Side(1.0, 0.25, 0.23)}
_UPPER = {SNR: _Side(1.0, 0.25, 0.8), DEMAND: _Side(0.6, 0.7, 0.65)}
_GAP_MIN = {SNR: (0.1, 0.0), DEMAND: (1.0, 0.01)}
"""The least gap: in dB or bytes, and as a share of the median. Quantiles may be equal."""


def below(family: Family, quantiles: Floats, threshold: float | Floats) -> Floats:
    """The probability that a value is below `threshold` [...], of `quantiles` [..., 3].

    `threshold` is in dB or bytes. NaN if there are no quantiles. Example: the probability is 0.1 at
    p10 and 0.5 at p50.
    """
    low, middle, high = np.moveaxis(quantiles, -1, 0)
    fixed, share = _GAP_MIN[family]
    least = fixed + share * np.abs(middle)
    ends = family.quantiles[0], 1 - family.quantiles[-1]
    lower = _beyond(middle - threshold, np.maximum(middle - low, least), ends[0], _LOWER[family])
    upper = _beyond(threshold - middle, np.maximum(high - middle, least), ends[1], _UPPER[family])
    probability = np.where(threshold <= middle, lower, 1 - upper)
    return np.where(threshold <= family.floor, 0 * middle, probability)


def _beyond(distance: Floats, gap: Floats, end: float, side: _Side) -> Floats:
    """The probability of a value further than `distance` from the median on one side."""
    gaps = np.maximum(distance / gap, 0)
    inside = 0.5 * (end / 0.5) ** (np.minimum(gaps, 1) ** side.stretch)
    excess = np.maximum(gaps - 1, 0) / side.tail_scale
    outside: Floats = (1 + side.tail_shape * excess) ** (-1 / side.tail_shape)
    return inside * outside
