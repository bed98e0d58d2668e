"""Upkeep of forecasts by the maintenance process: scores, and the removal of ended records."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.composition.background import background
from fleetcast.engine import is_clock_believed
from fleetcast.forecast.serving.store import PredictionStoreUnavailable
from fleetcast.forecast.serving.sweeping import Sweeping

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from fleetcast.accounts import ControlStore
    from fleetcast.config.sections import Forecast
    from fleetcast.engine import Engine, Plane
    from fleetcast.forecast.serving.scoring import Scoring
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.metrics import Counters

_ROUND_SECONDS = 15.0
_PAUSE_SECONDS = 0.01  # between slices of the store, for threads that wait for the store

logger = logging.getLogger(__name__)


class Housekeeping:
    """Scores forecasts that were served, and deletes records that have ended."""

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
        self._clock = store.clock
        self._scoring: Scoring | None = None
        self._names: dict[str, str] = {}
        """Names of tenants by account, as of the beginning of a round."""

    def running(self) -> AbstractContextManager[None]:
        """Runs the rounds in a thread until the end of the block."""
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
            except BaseException:  # the failure of a round must not prevent the next round
                logger.exception("forecasts are not scored")

    def _score(self) -> None:
        now_ns = self._clock.now_ns()
        if not self._store.has_due(now_ns):
            return
        if self._scoring is None:
            from fleetcast.forecast.serving.scoring import Scoring  # noqa: PLC0415 - slow to load

            self._scoring = Scoring(self._store, self._plane_of, self._counters)
        self._names = {tenant.account_id: tenant.name for tenant in self._accounts.tenants()}
        self._scoring.score(now_ns, is_clock_believed=is_clock_believed())

    def _plane_of(self, account_id: str) -> Plane | None:
        name = self._names.get(account_id)
        return None if name is None else self._engine.plane(account_id, name)
