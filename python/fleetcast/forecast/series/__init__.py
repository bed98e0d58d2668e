"""A linear model of each pool alone, in addition to the model for all pools.

    days      when each pool's day begins
    lags      its inputs: the pool's own windows of minutes, a day, a week and two weeks ago
    state     knowledge of a pool on one day, in one record
    learning  fits it to the four weeks before the day, and weighs its errors
    mixing    its answers, and the answers of both models as one

A fit for a day uses only rows before its start, so any process gets the same result at any time.
"""

from __future__ import annotations

from fleetcast.forecast.series.days import starts
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
    "starts",
]
