"""Baselines: simple forecasts that a model must beat.

- Last value: the newest value and the quantiles of its errors over the seven days before. If there
are no errors yet, the last value stands alone.
- Same time: quantiles of the values at the target's time of day over the seven days before. If
there is no day before, same time gives the answer of the last value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import demand, reduce, snr

if TYPE_CHECKING:
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Floats, Instants, Rows


@dataclass(frozen=True)
class Baselines:
    """Quantiles [issue times, horizons, quantiles] each; NaN if there is no last value."""

    last_value: Floats
    same_time: Floats


def baselines(family: Family, rows: Rows, issued_ns: Instants) -> Baselines:
    """Both baselines of one entity at issue times."""
    if family is SNR:
        minutes = snr.past(rows, issued_ns)
        (last, errors), days = snr.last_value_errors(minutes), snr.same_time(minutes)
    else:
        week = demand.past(rows, issued_ns)
        (last, errors), days = demand.last_value_errors(week), demand.same_time(week)
    spread = np.stack([reduce.quantiles(each, family.quantiles) for each in errors], axis=1)
    last_value = last[:, None, None] + np.nan_to_num(spread)
    if family is not SNR:
        last_value = np.maximum(last_value, 0.0)
    same_time = reduce.quantiles(days, family.quantiles)
    return Baselines(last_value, np.where(np.isnan(same_time), last_value, same_time))
