"""An answer to `GET /predictions`: kept values, new values if needed, and errors of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fleetcast.forecast.families import FAMILIES
from fleetcast.forecast.model import PREDICTION_UNAVAILABLE
from fleetcast.forecast.risk import below
from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.computing import Computing
from fleetcast.forecast.serving.failures import Failures
from fleetcast.forecast.serving.filling import EntityError, Filled, Filling, Resources
from fleetcast.forecast.serving.records import EntityKey
from fleetcast.forecast.serving.rollouts import Rollout

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.config.sections import Forecast as ForecastSettings
    from fleetcast.engine import ForecastQuestion, Plane, RecentForecasts
    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.metrics import Counters

_BUSY = EntityError(PREDICTION_UNAVAILABLE, "other requests of the tenant are being computed")


class Predictions:
    """Answers for one process. Threads may share the object. Make it after a fork."""

    def __init__(
        self,
        store: PredictionStore,
        releases: Releases,
        settings: Callable[[], ForecastSettings],
        counters: Counters,
    ) -> None:
        self._store = store
        self._releases = releases
        self._clock = releases.clock
        self._settings = settings
        self._resources = Resources(store, releases, Failures(counters, releases.clock), counters)
        self._computing = Computing()

    def answer(self, plane: Plane, account_id: str, asked: ForecastQuestion) -> bytes:
        """Returns the body of the answer. Raises `PredictionStoreUnavailable`, `StoreError`."""
        now_ns = self._clock.now_ns()
        recent = self._recent(plane, account_id, asked)
        filled = Filled()
        if recent.missing:
            with self._computing.turn(account_id) as mine:
                # Another request of the tenant may have computed the values while this one waited.
                recent = self._recent(plane, account_id, asked)
                if not mine:
                    filled.errors = dict.fromkeys(recent.missing, _BUSY)
                elif recent.missing and recent.rollout is not None:
                    filling = Filling(self._resources, self._settings(), plane, asked)
                    missing = [
                        EntityKey.of(plane, account_id, asked.family, each)
                        for each in recent.missing
                    ]
                    filled = filling.fill(missing, Rollout.decode(recent.rollout))
        return recent.answer(now_ns, filled.values, filled.errors)

    @staticmethod
    def with_risk(document: dict[str, Any], threshold: float) -> dict[str, Any]:
        """Returns an answer with the probability that each value is below `threshold`, or not.

        `threshold` is in dB or bytes. Example: 0.1 below the threshold `snr_db_p10`.
        """
        family = FAMILIES[document["model_family"]]
        for item in document["items"]:
            probability = float(below(family, np.array([*item["value"].values()]), threshold))
            item |= {"below": probability, "above": 1 - probability}
        return document | {"threshold": threshold}

    def _recent(self, plane: Plane, account_id: str, asked: ForecastQuestion) -> RecentForecasts:
        fresh_ns = self._settings().fresh_seconds * NS_PER_SECOND
        with self._store.read() as records:
            return records.recent(plane, account_id, asked, fresh_ns, self._clock)
