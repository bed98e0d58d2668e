"""Forecasts as a worker answers them.

The numeric libraries take nearly a second to load. The first request that needs them loads them, so
a service without predictions never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.composition.loading import loaded_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast.config.sections import Forecast
    from fleetcast.engine import Plane
    from fleetcast.forecast.serving.predictions import Predictions
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.metrics import Counters


class Forecasting:
    """Answers `GET /predictions` in a worker. Safe to share between threads."""

    def __init__(
        self,
        store: PredictionStore,
        settings: Callable[[], Forecast],
        counters: Counters,
    ) -> None:
        def load() -> Predictions:
            from fleetcast.forecast.serving.predictions import Predictions  # noqa: PLC0415 - slow to load
            from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415 - slow to load

            return Predictions(store, Releases(store), settings, counters)

        self._predictions = loaded_once(load)

    def answer(
        self,
        plane: Plane,
        account_id: str,
        family_name: str,
        entity_ids: Sequence[str],
        horizon_minutes: int | None,
    ) -> dict[str, object]:
        """Returns the body of an answer. Raises `PredictionStoreUnavailable`, `StoreError`."""
        predictions = self._predictions()
        return predictions.answer(plane, account_id, family_name, entity_ids, horizon_minutes)
