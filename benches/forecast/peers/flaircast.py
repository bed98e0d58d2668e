"""Level and shape of a period, and a ridge regression on the level: flaircast."""

from __future__ import annotations

import numpy as np
from flaircast import forecast

from benches.forecast.peers.peer import Peer, steps_ahead

# Two weeks of windows; a day of minutes. It knows periods of an hour and a day of windows, and of
# an hour of minutes.
STEPS = {"snr": 1440, "demand": 14 * 96}
FREQUENCY = {"snr": "T", "demand": "15T"}


def paths(family, values):
    """Quantiles of 200 paths, which is what it draws if nothing is said."""
    steps = steps_ahead(family)
    drawn = forecast(values, horizon=max(steps), freq=FREQUENCY[family.name], seed=0)
    return np.quantile(drawn[:, np.array(steps) - 1], family.quantiles, axis=0).T


PEERS = [Peer("flaircast", "flaircast", "Apache-2.0", STEPS, paths)]
