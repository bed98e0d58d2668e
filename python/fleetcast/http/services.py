"""What the HTTP surface stands on: given to `create_app`, replaced by doubles in tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fleetcast.metrics import Counters

if TYPE_CHECKING:
    from fleetcast.accounts import Identity
    from fleetcast.config import Settings
    from fleetcast.engine import Plane
    from fleetcast.logs import Served

Probe = Callable[[], None]
"""Asks a dependency for a sign of life; any exception means that it is not well."""


class Authenticator(Protocol):
    """Who a request comes from."""

    def authenticate(self, key_text: str | None) -> Identity:
        """The identity behind a key, `None` where none was sent.

        Raises `InvalidKey` for a key that was sent and is no good, `Refused` (`auth_failed`,
        `tenant_disabled`, `tenant_unknown`), `ControlStoreUnavailable`.
        """


class Planes(Protocol):
    """The stores of the tenants."""

    def plane(self, account_id: str, tenant_key: str) -> Plane:
        """The open store of an account. Raises `StoreError` where it cannot be opened."""

    def release(self, account_id: str, plane: Plane | None = None) -> None:
        """Closes a store that failed, if it still is `plane`; the next use opens it anew."""


class Guard(Protocol):
    """Rate limit and lockout, both per client address."""

    def admit(self, address: str) -> None:
        """Counts a request. Raises `Refused` (`rate_limited`, with `retry_after_seconds`)."""

    def check_lockout(self, address: str) -> None:
        """Raises `Refused` (`auth_lockout`, with `retry_after_seconds`)."""

    def record_failure(self, address: str) -> None:
        """Counts a key that was sent and is no good."""


class Predictor(Protocol):
    """What answers `GET /predictions`."""

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


class OpenGuard:
    """Lets everything pass: both limits are off."""

    def admit(self, address: str) -> None:
        """Passes."""

    def check_lockout(self, address: str) -> None:
        """Passes."""

    def record_failure(self, address: str) -> None:
        """Forgets it."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything a worker opened after its fork, and the settings."""

    settings: Settings
    authenticator: Authenticator
    engine: Planes
    guard: Guard = field(default_factory=OpenGuard)
    probes: Mapping[str, Mapping[str, Probe]] = field(default_factory=dict)
    """By subsystem (`telemetry`, `topology`, `predictions`), then by dependency."""
    counters: Counters = field(default_factory=Counters.alone)
    predictor: Predictor | None = None
    """`None` where nothing is predicted."""
    simulate: Simulate | None = None
    """`None` where topology shows only what was observed."""
    requests_total: Callable[[str], int] = lambda _account_id: 0
    """Requests of an account so far. Raises `ControlStoreUnavailable`."""
    access_log: Callable[[Served], None] = lambda _served: None
    clock: Callable[[], int] = time.time_ns
    """Nanoseconds since 1970 in UTC."""

    @property
    def families(self) -> tuple[str, ...]:
        """What is predicted."""
        return () if self.predictor is None else self.settings.forecast.families
