"""What the gRPC surface stands on: given to `serve`, replaced by doubles in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """Who a call comes from."""

    def authenticate(self, key_text: str | None) -> Identity:
        """The identity behind a key, `None` where none was sent.

        Raises `Refused` (`auth_failed`, `tenant_disabled`, `tenant_unknown`),
        `ControlStoreUnavailable`.
        """


class Planes(Protocol):
    """The stores of the tenants."""

    def plane(self, account_id: str, tenant_key: str) -> Plane:
        """The open store of an account. Raises `StoreError` where it cannot be opened."""

    def release(self, account_id: str, plane: Plane | None = None) -> None:
        """Has the store opened anew by the next call, if it still is `plane`."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything the process opened, and the settings as they are now."""

    settings: Callable[[], Settings]
    authenticator: Authenticator
    engine: Planes
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """By dependency: what must be well for writes to be accepted."""
    counters: Counters = field(default_factory=Counters.alone)
    access_log: Callable[[Served], None] = lambda _served: None
