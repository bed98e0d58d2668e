"""Forecasts as a worker answers them.

The numeric libraries take nearly a second to load. The first request that needs them loads them, so
a service without predictions never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.composition.loading import loaded_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.config.sections import Forecast
    from fleetcast.forecast.serving.predictions import Predictions
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.metrics import Counters


def forecasting(
    store: PredictionStore, settings: Callable[[], Forecast], counters: Counters
) -> Callable[[], Predictions]:
    """Returns a function with the answers to `GET /predictions` in a worker."""

    def load() -> Predictions:
        from fleetcast.forecast.serving.predictions import Predictions  # noqa: PLC0415 - slow to load
        from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415 - slow to load

        return Predictions(store, Releases(store), settings, counters)

    return loaded_once(load)
