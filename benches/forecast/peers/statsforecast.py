"""Exponential smoothing, alone and below a season of a day: statsforecast, fitted each time."""

from __future__ import annotations

import warnings

import numpy as np
from statsforecast.models import MSTL, AutoETS

from benches.forecast.peers.peer import Peer, steps_ahead

# Two weeks of windows; six hours of minutes.
STEPS = {"snr": 360, "demand": 14 * 96}


def fitted(model, family, values):
    """Mean and intervals of a fitted model: an interval of 98 % ends at p99."""
    upper = 80 if family.quantiles[-1] == 0.9 else 98
    steps = steps_ahead(family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecast = model.forecast(y=values, h=max(steps), level=sorted({80, upper}))
    bounds = [forecast["lo-80"], forecast["mean"], forecast[f"hi-{upper}"]]
    return np.stack(bounds, axis=-1)[np.array(steps) - 1]


def smoothed(family, values):
    return fitted(AutoETS(season_length=1), family, values)


def additive(family, values):
    return fitted(AutoETS(season_length=1, model="AZN"), family, values)


def seasonal(family, values):
    model = MSTL(season_length=[96], trend_forecaster=AutoETS(model="ZZN"))
    return fitted(model, family, values)


PEERS = [
    Peer("AutoETS", "statsforecast", "Apache-2.0", STEPS, smoothed),
    Peer("AutoETS, additive", "statsforecast", "Apache-2.0", STEPS, additive),
    Peer("MSTL", "statsforecast", "Apache-2.0", {"demand": STEPS["demand"]}, seasonal),
]
