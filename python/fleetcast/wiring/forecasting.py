"""Forecasts of one worker: loaded by the first who needs them, and scored on the side.

The libraries that compute take the better part of a second to load, so nothing of them is loaded
before a worker serves.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.config.sections import FAMILIES
from fleetcast.errors import OperatorError, StoreError
from fleetcast.forecast.serving.store import PredictionStore, PredictionStoreUnavailable
from fleetcast.wiring.background import background

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fleetcast.accounts import ControlStore
    from fleetcast.config.sections import Forecast
    from fleetcast.engine import Engine, Plane
    from fleetcast.forecast.serving.predictions import Predictions
    from fleetcast.forecast.simulation import Simulation
    from fleetcast.http.services import Simulate
    from fleetcast.metrics import Counters

_SCORE_SECONDS = 15.0

logger = logging.getLogger(__name__)


class Forecasting:
    """What a worker answers `GET /predictions` with. Safe to share between threads."""

    def __init__(
        self,
        store: PredictionStore,
        settings: Callable[[], Forecast],
        accounts: ControlStore,
        engine: Engine,
        counters: Counters,
    ) -> None:
        self._store = store
        self._settings = settings
        self._accounts = accounts
        self._engine = engine
        self._counters = counters
        self._lock = threading.Lock()
        self._loaded: Predictions | None = None

    def answer(
        self,
        plane: Plane,
        account_id: str,
        family_name: str,
        entity_ids: Sequence[str],
        horizon_minutes: int | None,
    ) -> dict[str, object]:
        """The body of an answer. Raises `PredictionStoreUnavailable`, `StoreError`."""
        predictions = self._predictions()
        return predictions.answer(plane, account_id, family_name, entity_ids, horizon_minutes)

    def scoring(self) -> AbstractContextManager[None]:
        """Scores what was served until the end of the block."""
        return background("score", self._score)

    def _predictions(self) -> Predictions:
        with self._lock:
            if self._loaded is None:
                from fleetcast.forecast.serving.predictions import Predictions  # noqa: PLC0415
                from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415

                self._loaded = Predictions(self._store, Releases(self._store), self._settings)
            return self._loaded

    def _score(self, stopped: threading.Event) -> None:
        scoring = None
        while not stopped.wait(_SCORE_SECONDS):
            try:
                if not self._settings().families or not self._store.has_due(time.time_ns()):
                    continue
                if scoring is None:
                    from fleetcast.forecast.serving.scoring import Scoring  # noqa: PLC0415

                    scoring = Scoring(self._store, self._plane_of, self._counters)
                scoring.score(time.time_ns())
            except (PredictionStoreUnavailable, ControlStoreUnavailable) as error:
                logger.warning("forecasts are not scored: %s", error)
            except Exception:
                # What one forecast cannot do must not keep the others from being scored.
                logger.exception("forecasts are not scored")

    def _plane_of(self, account_id: str) -> Plane | None:
        with self._accounts.read() as tables:
            tenants = [tenant for tenant in tables.tenants() if tenant.account_id == account_id]
        try:
            return self._engine.plane(account_id, tenants[0].name) if tenants else None
        except StoreError:
            return None


def simulated(directory: Path) -> Simulate:
    """A simulated topology, loaded by the first who needs it."""
    loaded: Simulation | None = None

    def simulate(
        as_of_ns: int, measurement: str | None
    ) -> tuple[list[dict[str, object]], dict[str, object]] | None:
        nonlocal loaded
        from fleetcast.forecast import simulation  # noqa: PLC0415 - see above

        if measurement is not None and measurement not in simulation.MEASUREMENTS:
            return None
        if loaded is None:
            try:
                loaded = simulation.load(directory)
            except OperatorError as error:
                logger.error("topology is not simulated: %s", error)  # noqa: TRY400
                return None
        return loaded.answer(as_of_ns, measurement)

    return simulate


def forget_predictions(directory: Path, account_id: str) -> None:
    """Deletes what is kept of a deleted account, which nobody can read any more."""
    store = PredictionStore(directory)
    try:
        store.forget(account_id)
    except PredictionStoreUnavailable as error:
        logger.warning("forecasts of %s stay on disk, sealed: %s", account_id, error)
    finally:
        store.close()


def provide_models(directory: Path) -> None:
    """Makes the prediction store, and releases what came with this version where nothing ever was.

    Raises `OperatorError`, `OSError`, `PredictionStoreUnavailable`.
    """
    store = PredictionStore(directory)
    store.ensure()
    try:
        missing = [family for family in FAMILIES if store.lacks_release(family)]
        if missing:
            from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415

            for family in missing:
                Releases(store).promote(family)
    finally:
        store.close()
