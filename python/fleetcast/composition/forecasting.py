"""Forecasts: answered by workers, scored and cleared away by the maintenance process.

The libraries that compute take the better part of a second to load, so they are loaded by the first
who needs them, and by nobody where nothing is predicted.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.composition.background import background
from fleetcast.config.sections import FAMILIES
from fleetcast.errors import OperatorError
from fleetcast.forecast.serving.clock import Clock
from fleetcast.forecast.serving.store import PredictionStore, PredictionStoreUnavailable
from fleetcast.forecast.serving.sweeping import Sweeping

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fleetcast.accounts import ControlStore
    from fleetcast.config.sections import Forecast
    from fleetcast.engine import Engine, Plane
    from fleetcast.forecast.serving.predictions import Predictions
    from fleetcast.forecast.serving.scoring import Scoring
    from fleetcast.forecast.simulation import Simulation
    from fleetcast.http.services import Simulate
    from fleetcast.metrics import Counters

_ROUND_SECONDS = 15.0
_PAUSE_SECONDS = 0.01  # between slices of the store, for those who wait for it

logger = logging.getLogger(__name__)


class Forecasting:
    """What a worker answers `GET /predictions` with. Safe to share between threads."""

    def __init__(
        self,
        store: PredictionStore,
        settings: Callable[[], Forecast],
        counters: Counters,
    ) -> None:
        self._store = store
        self._settings = settings
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

    def _predictions(self) -> Predictions:
        with self._lock:
            if self._loaded is None:
                from fleetcast.forecast.serving.predictions import Predictions  # noqa: PLC0415
                from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415

                releases = Releases(self._store)
                self._loaded = Predictions(self._store, releases, self._settings, self._counters)
            return self._loaded


class Housekeeping:
    """Scores what was served, and deletes what has ended."""

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
        self._clock = Clock()
        self._scoring: Scoring | None = None
        self._names: dict[str, str] = {}
        """Tenants by account, as of the beginning of a round."""

    def running(self) -> AbstractContextManager[None]:
        """Goes on until the end of the block."""
        return background("forecasts", self._run)

    def _run(self, stopped: threading.Event) -> None:
        sweeping = Sweeping(self._store, self._clock, self._settings)
        while not stopped.wait(_ROUND_SECONDS):
            try:
                while sweeping.sweep() and not stopped.wait(_PAUSE_SECONDS):
                    pass
                self._score()
            except (PredictionStoreUnavailable, ControlStoreUnavailable) as error:
                logger.warning("forecasts are not scored: %s", error)
            except BaseException:  # what one round cannot do must not keep the next from doing it
                logger.exception("forecasts are not scored")

    def _score(self) -> None:
        now_ns = self._clock.now_ns()
        if not self._store.has_due(now_ns):
            return
        if self._scoring is None:
            from fleetcast.forecast.serving.scoring import Scoring  # noqa: PLC0415

            self._scoring = Scoring(self._store, self._plane_of, self._counters)
        with self._accounts.read() as tables:
            self._names = {tenant.account_id: tenant.name for tenant in tables.tenants()}
        self._scoring.score(now_ns)

    def _plane_of(self, account_id: str) -> Plane | None:
        name = self._names.get(account_id)
        return None if name is None else self._engine.plane(account_id, name)


def simulated(directory: Path) -> Simulate:
    """A simulated topology, loaded by the first who needs it.

    A tenant who has ever written of what is simulated has a fleet, which is merely silent.
    """
    loaded: Simulation | None = None

    def simulate(
        plane: Plane, as_of_ns: int, measurement: str | None
    ) -> tuple[list[dict[str, object]], dict[str, object]] | None:
        nonlocal loaded
        from fleetcast.forecast import simulation  # noqa: PLC0415 - see above

        if measurement is not None and measurement not in simulation.MEASUREMENTS:
            return None
        if plane.knows_any(simulation.MEASUREMENTS):
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
