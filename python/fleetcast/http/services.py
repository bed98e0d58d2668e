"""The parts that the HTTP surface needs; `create_app` takes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.config import Settings
    from fleetcast.engine import Engine, Plane, Service
    from fleetcast.forecast.serving.predictions import Predictions
    from fleetcast.metrics import Counters
    from fleetcast.surface.readiness import Probe

Simulated = tuple[list[dict[str, object]], dict[str, object]]
Simulate = Callable[["Plane", int, str | None], Simulated | None]
"""Simulates the entities of a plane at an instant.

Takes the plane, the instant in nanoseconds, and a measurement or `None` for all. Returns the
entities and the `simulation` object that describes them. Returns `None` if no such entity is
simulated, or if the plane's tenant has a fleet. Raises `StoreError`.
"""


@dataclass(frozen=True, kw_only=True)
class HttpServices:
    """The parts of one HTTP worker, and the settings that its application serves by."""

    engine: Engine
    counters: Counters
    settings: Settings
    service: Service
    """Decides about requests, by these settings."""
    probes: Mapping[str, Mapping[str, Probe]] = field(default_factory=dict)
    """By subsystem (`telemetry`, `topology`, `predictions`), then by dependency."""
    predictions: Callable[[], Predictions] | None = None
    """`None` if no family is predicted."""
    simulate: Simulate | None = None
    """`None` if topology shows only observed samples."""
    requests_total: Callable[[str], int] = lambda _account_id: 0
    """Returns the requests of an account so far. Raises `ControlStoreUnavailable`."""
    clock: Callable[[], int] = time.time_ns
    """Nanoseconds since 1970 in UTC."""

    @property
    def families(self) -> tuple[str, ...]:
        """The families that are predicted."""
        return () if self.predictions is None else self.settings.forecast.families
