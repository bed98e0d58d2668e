"""Stores of an installation as one process opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fleetcast.accounts import ControlStore, Usage
    from fleetcast.accounts.tenants import Audit
    from fleetcast.accounts.usage import Counted
    from fleetcast.engine import Engine
    from fleetcast.forecast.serving.store import PredictionStore


class Follower(Protocol):
    """Repeats changes of accounts, which commands have made, in the log."""

    def follow(self) -> None:
        """Writes the new ones. Raises `OSError`, `ValueError`, `ControlStoreUnavailable`."""


class Stores(Protocol):
    """Stores of one process. Make them after a fork; nothing is opened before its first use."""

    @property
    def is_shared(self) -> bool:
        """True where other nodes use them, too."""

    @property
    def control(self) -> ControlStore:
        """Tenants and keys."""

    @property
    def engine(self) -> Engine:
        """Telemetry of all tenants."""

    @property
    def predictions(self) -> PredictionStore:
        """Forecasts and what serves them."""

    def prepare(self) -> None:
        """Seals what fleetcast 0.3.0 wrote without a seal, once, and looks at the accounts.

        Raises `OperatorError` if the stores were made with another master key, and
        `ControlStoreUnavailable` for accounts that are damaged or were put back.
        """

    def usage(self, counted: Counted, run: str) -> Usage:
        """Requests of accounts, with those that `counted` has of the run."""

    def audit(self) -> Audit:
        """Notes changes of accounts."""

    def follower(self) -> Follower:
        """Repeats them."""

    def forget(self, account_id: str) -> None:
        """Deletes what is kept beside the plane of a deleted account.

        Raises `ControlStoreUnavailable`, `PredictionStoreUnavailable`.
        """

    def probe_reads(self) -> None:
        """Fails where no plane can be read."""

    def probe_writes(self) -> None:
        """Fails where no plane can be written to."""

    def claim(self) -> None:
        """Takes this node's id, as it begins to serve.

        Raises `OperatorError` where another process serves by it, `StoreError`.
        """

    def beat(self) -> None:
        """Notes that this node serves. Raises `StoreError`, `OperatorError`."""

    def prefers(self, account_id: str) -> bool:
        """True where this node comes first at the upkeep of an account's plane."""

    def sweep(self) -> None:
        """Removes what no node needs any more. Raises `StoreError`."""

    def close(self) -> None:
        """Closes all that was opened; acknowledged batches are stored first."""
