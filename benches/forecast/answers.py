"""Answers at the issue times of samples, as the service and the backtest give them."""

from __future__ import annotations

import numpy as np

from fleetcast.forecast.families import MINUTE_NS
from fleetcast.forecast.features import features
from fleetcast.forecast.series import starts

DAY_NS = 1440 * MINUTE_NS


def answered(forecaster, samples, rows):
    """Quantiles [samples, horizons, quantiles]; `rows` are those of each entity."""
    family = forecaster.family
    answers = np.full((*samples.truth.shape, len(family.quantiles)), np.nan)
    for entity in np.unique(samples.entity):
        mine = np.flatnonzero(samples.entity == entity)
        issued, pool = samples.issued_ns[mine], [rows[entity]]
        states = None
        if forecaster.is_mixed:
            states = forecaster.learned(pool, starts(str(entity), issued)[None])
        answers[mine] = forecaster.predict(features(family, pool, issued), states).quantiles[0]
    return answers
