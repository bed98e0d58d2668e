"""Forecasts of links whose values come in steps: levels that were seen, not values between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fleetcast.forecast.rows import Floats

HOUR = 60
"""Minutes before an issue time whose values are the levels."""
_STEP_MIN_DB = 0.08
"""Closer values lie between levels, as the means of several samples do."""
_SAME_DB = 1e-3
"""Values this close are one level, computed in two ways."""
_UP = 0.4
"""Share of the way to the next level from which a quantile goes up."""
_VALUES_PER_LEVEL = 2
"""A link comes back to its levels. A few values of any link may lie apart by chance."""
_STEPS_BEYOND = 2
"""A quantile further beyond all levels stays, because rain takes a link past them."""


def on_levels(quantiles: Floats, hour: Floats) -> Floats:
    """Moves quantiles [links, horizons, quantiles] in dB to levels among `hour` [links, `HOUR`].

    If a link does not stand on levels, its quantiles stay unchanged. A larger quantile never goes
    to a lower level, so quantiles do not cross. Example: if 10 and 11 dB are neighbours, 10.3
    becomes 10 and 10.4 becomes 11.
    """
    ordered = np.sort(hour, axis=-1)  # NaN come last
    gaps = np.diff(ordered, axis=-1)
    apart = gaps > _SAME_DB
    levels, values = 1 + apart.sum(-1), (~np.isnan(ordered)).sum(-1)
    step = np.where(apart, gaps, np.inf).min(-1)
    stands = (levels > 1) & (step >= _STEP_MIN_DB) & (_VALUES_PER_LEVEL * levels <= values)
    result, own, ordered = quantiles.copy(), quantiles[stands], ordered[stands][:, None]
    bounds = ordered[..., :-1] + _UP * gaps[stands][:, None]
    index = (own[..., None] >= bounds[:, None]).sum(-1)
    nearest = np.take_along_axis(ordered, index, axis=-1)
    near = np.abs(own - np.clip(own, ordered[..., :1], np.fmax.reduce(ordered, -1)[..., None]))
    near = near <= _STEPS_BEYOND * step[stands][:, None, None]
    result[stands] = np.where(near, nearest, own)
    return result
