"""A linear model of each pool by itself, beside the one for all pools.

    lags      its inputs: the pool's own windows of minutes, a day, a week and two weeks ago
    state     knowledge of a pool on one day, in one record
    learning  fits it to the four weeks before the day, and says how far it is to be trusted
    mixing    its answers, and those of both models as one

Days are those of UTC. Whatever is fitted on a day looks at rows before its start only, so any
process comes to the same, whenever it does.
"""

from __future__ import annotations

from fleetcast.forecast.series.learning import DAYS, Histories, learned, origins
from fleetcast.forecast.series.mixing import mixed
from fleetcast.forecast.series.state import STATE, States, decoded, encoded

__all__ = [
    "DAYS",
    "STATE",
    "Histories",
    "States",
    "decoded",
    "encoded",
    "learned",
    "mixed",
    "origins",
]
