"""Releases and batches that fail: counted each time, and logged once a minute.

Libraries that compute have no exception in common: onnxruntime has several, and panics of polars
and of the engine are no `Exception`. Each of these ends the batch, never the request or thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.metrics import sample

if TYPE_CHECKING:
    from fleetcast.forecast.serving.clock import Clock
    from fleetcast.forecast.serving.rollouts import Release, Role
    from fleetcast.metrics import Counters

_SAID_NS = 60_000_000_000
_KNOWN_MAX = 64

logger = logging.getLogger(__name__)


class Failures:
    """Recent failures of this process. Safe to share between threads."""

    def __init__(self, counters: Counters, clock: Clock) -> None:
        self._counters = counters
        self._clock = clock
        self._said: dict[str, int] = {}
        """When each failure was last logged."""

    def of_release(self, family: str, role: Role, release: Release, error: BaseException) -> None:
        """Notes that a model did not load, or did not run."""
        labels = {
            "family": family,
            "model_version": release.model_version,
            "traffic_role": role,
        }
        self._count("fleetcast_forecast_release_failed_total", labels)
        if self._is_due(release.release_id):
            logger.error(
                "the %s release %s of %s (%s) fails: %s",
                *(role, release.release_id, family, release.model_version, _reason(error)),
                exc_info=error,
            )

    def of_batch(self, family: str, error: BaseException) -> None:
        """Notes that a batch could not be read, or could not be turned into features."""
        self._count("fleetcast_forecast_batch_failed_total", {"family": family})
        if self._is_due(family):
            logger.error("%s forecasts fail: %s", family, _reason(error), exc_info=error)

    def _count(self, name: str, labels: dict[str, str]) -> None:
        self._counters.add(self._counters.counter(sample(name, **labels)))

    def _is_due(self, name: str) -> bool:
        now_ns = self._clock.elapsed_ns()
        if name in self._said and now_ns - self._said[name] < _SAID_NS:
            return False
        if len(self._said) >= _KNOWN_MAX:
            self._said.clear()
        self._said[name] = now_ns
        return True


def _reason(error: BaseException) -> str:
    return str(error).partition("\n")[0]
