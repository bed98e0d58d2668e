"""Stores of an installation as one process opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.accounts import ControlStore, Usage
    from fleetcast.accounts.audited import Audit
    from fleetcast.accounts.usage import Counted
    from fleetcast.engine import Engine
    from fleetcast.forecast.serving.store import PredictionStore


class Follower(Protocol):
    """Repeats changes of accounts, which commands have made, in the log."""

    def follow(self) -> None:
        """Writes the new changes. Raises `OSError`, `ValueError`, `ControlStoreUnavailable`."""


class Stores(Protocol):
    """Stores of one process. Make them after a fork; each store is opened on its first use."""

    @property
    def is_shared(self) -> bool:
        """True if other nodes use the stores as well."""

    @property
    def control(self) -> ControlStore:
        """Tenants and keys."""

    @property
    def engine(self) -> Engine:
        """Telemetry of all tenants."""

    @property
    def predictions(self) -> PredictionStore:
        """Forecasts, and the records and models that serve them."""

    def prepare(self) -> None:
        """Seals the unsealed records of fleetcast 0.3.0, once, and checks the accounts.

        Raises `OperatorError` if the stores were made with another master key. Raises
        `ControlStoreUnavailable` if accounts are damaged or an older copy was put back.
        """

    def usage(self, counted: Counted, run: str) -> Usage:
        """Returns the requests of accounts; `counted` has the requests of the run."""

    def audit(self) -> Audit:
        """Returns a function that notes changes of accounts."""

    def follower(self) -> Follower:
        """Returns a follower that repeats these notes."""

    def forget(self, account_id: str) -> None:
        """Deletes the data of a deleted account that is outside its plane.

        Raises `ControlStoreUnavailable`, `PredictionStoreUnavailable`.
        """

    def probe_reads(self) -> None:
        """Raises if no plane can be read."""

    def probe_writes(self) -> None:
        """Raises if no plane can be written."""

    def take_node_id(self) -> None:
        """Takes this node's id when the service begins to serve.

        Raises `StoreError`, and `OperatorError` if another process serves with the id.
        """

    def beat(self) -> None:
        """Notes that this node serves. Raises `StoreError`, `OperatorError`."""

    def gauges(self) -> Mapping[str, int]:
        """Returns the state of stores that nodes share, by the names of gauges."""

    def prefers(self, account_id: str) -> bool:
        """Returns true if this node comes first for the upkeep of an account's plane."""

    def sweep(self) -> None:
        """Removes data that no node needs any more. Raises `StoreError`."""

    def close(self) -> None:
        """Closes all open stores; acknowledged batches are stored first."""
