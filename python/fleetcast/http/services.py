"""The parts that the HTTP surface stands on: given to `create_app`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fleetcast.surface.services import SurfaceServices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.config import Settings
    from fleetcast.engine import Plane, Service
    from fleetcast.surface.services import Probe


class Predictor(Protocol):
    """Forecasts for `GET /predictions`."""

    def answer(
        self,
        plane: Plane,
        account_id: str,
        family_name: str,
        entity_ids: Sequence[str],
        horizon_minutes: int | None,
    ) -> dict[str, object]:
        """The body of an answer. Raises `PredictionStoreUnavailable`, `StoreError`."""


Simulated = tuple[list[dict[str, object]], dict[str, object]]
Simulate = Callable[["Plane", int, str | None], Simulated | None]
"""Entities of an instant, in nanoseconds, and of a measurement or all, and what is to be said of
them; `None` where nothing of the kind is simulated, or the plane's tenant has a fleet. Raises
`StoreError`."""


@dataclass(frozen=True, kw_only=True)
class HttpServices(SurfaceServices):
    """The parts of one HTTP worker, and the settings that its application serves by."""

    settings: Settings
    service: Service
    """Decides about requests, by these settings."""
    probes: Mapping[str, Mapping[str, Probe]] = field(default_factory=dict)
    """By subsystem (`telemetry`, `topology`, `predictions`), then by dependency."""
    predictor: Predictor | None = None
    """`None` where nothing is predicted."""
    simulate: Simulate | None = None
    """`None` where topology shows only what was observed."""
    requests_total: Callable[[str], int] = lambda _account_id: 0
    """Requests of an account so far. Raises `ControlStoreUnavailable`."""
    clock: Callable[[], int] = time.time_ns
    """Nanoseconds since 1970 in UTC."""

    @property
    def families(self) -> tuple[str, ...]:
        """Families that are predicted."""
        return () if self.predictor is None else self.settings.forecast.families
