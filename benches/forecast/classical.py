"""Classical models fitted per series and origin (statsforecast), on a sample: they cost too much
to run them everywhere.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from statsforecast.models import MSTL, AutoETS

from fleetcast.forecast.families import DEMAND, MINUTE_NS
from fleetcast.forecast.features.demand import Intervals
from fleetcast.forecast.features.minutes import averaged
from fleetcast.forecast.features.reduce import filled_forward
from fleetcast.forecast.features.windows import STEP_NS

SERIES = 8
ORIGINS = 4


def history(family, rows, issued_ns):
    """History without gaps: two weeks of windows, or six hours of minutes."""
    if family is DEMAND:
        issued = np.array([issued_ns])
        ((spacing, _),) = Intervals.of(rows).spacings(issued)
        count = 14 * 96
        windows = Intervals.of(rows).windows(spacing, issued_ns // STEP_NS - count, count)
        values = filled_forward(windows.offered, count)
    else:
        first = issued_ns // MINUTE_NS - 720
        values = filled_forward(averaged([rows], "snr_db", first, 720)[0], 360)[360:]
    return values[np.argmax(~np.isnan(values)) :]


def sample(samples):
    """Places of samples: some entities, some origins each, spread evenly."""
    entities = np.unique(samples.entity)
    chosen = []
    for entity in entities[:: max(1, len(entities) // SERIES)][:SERIES]:
        indices = np.flatnonzero(samples.entity == entity)
        count = ORIGINS if len(entities) > 1 else ORIGINS * SERIES
        chosen += indices[:: max(1, len(indices) // count)][:count].tolist()
    return np.array(chosen)


def fitted(model, values, steps, upper):
    """Quantiles at each step; the last value where the model cannot be fitted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forecast = model.forecast(y=values, h=max(steps), level=sorted({80, upper}))
    except Exception:  # noqa: BLE001  it raises nothing narrower
        return [[values[-1]] * 3 for _ in steps]
    bounds = (forecast["lo-80"], forecast["mean"], forecast[f"hi-{upper}"])
    return [[bound[k - 1] for bound in bounds] for k in steps]


def classical(family, rows_of, samples, indices):
    """Quantiles of each model by name [places, horizons, 3], and its seconds per series."""
    if family is DEMAND:
        models = {
            "AutoETS": lambda: AutoETS(season_length=1),
            "MSTL": lambda: MSTL(season_length=[96], trend_forecaster=AutoETS(model="ZZN")),
        }
    else:
        models = {"AutoETS": lambda: AutoETS(season_length=1)}
    steps = [h // family.step_minutes for h in family.horizons_minutes]
    upper = 80 if family.quantiles[2] == 0.9 else 98
    result = {}
    for name, make in models.items():
        answers, start = [], time.process_time()
        for index in indices:
            values = history(family, rows_of(samples.entity[index]), samples.issued_ns[index])
            answers.append(fitted(make(), values, steps, upper))
        quantiles = np.array(answers, float)
        if family is DEMAND:
            quantiles = np.maximum(quantiles, 0)
        result[name] = quantiles, (time.process_time() - start) / len(indices)
    return result
