"""Deletion of records that have ended, a slice of a table at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.records import LEASE_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.config.sections import Forecast
    from fleetcast.forecast.serving.clock import Clock
    from fleetcast.forecast.serving.store import PredictionStore

_DAY_NS = 86_400 * NS_PER_SECOND
"""States are for a day of the wall clock, and end when they are older than a day."""
_SLICES_MAX = 32
"""Slices of a round: a million records are read in eight minutes."""


class Sweeping:
    """Sweeps the tables in turn. Open scores end when they are due."""

    def __init__(
        self, store: PredictionStore, clock: Clock, settings: Callable[[], Forecast]
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._tables = ["leases", "cooldowns", "values", "series"]
        self._first = b""
        self._slices = 0

    def sweep(self) -> bool:
        """Deletes ended records in the next slice; returns false if a round ends with it.

        Raises `PredictionStoreUnavailable`.
        """
        table = self._tables[0]
        lasts_ns = self._lasts_ns(table)
        self._first = self._store.sweep(
            table, self._first, lambda record: self._clock.age_ns(record) >= lasts_ns
        )
        self._slices += 1
        at_end = False
        if not self._first:
            self._tables.append(self._tables.pop(0))
            at_end = table == "series"
        if at_end or self._slices == _SLICES_MAX:
            self._slices = 0
            return False
        return True

    def _lasts_ns(self, table: str) -> int:
        if table == "leases":
            return LEASE_NS
        if table == "series":
            return _DAY_NS
        settings = self._settings()
        seconds = settings.cooldown_seconds if table == "cooldowns" else settings.fresh_seconds
        return seconds * NS_PER_SECOND
