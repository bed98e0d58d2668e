"""Stores of an installation of many nodes, as one process of one node opens them."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStore, ControlStoreUnavailable, Usage
from fleetcast.accounts.store import COUNTED, SPACES
from fleetcast.cluster import ClusterEngine, open_cluster
from fleetcast.engine import MasterKeys, Records, UsageRecord
from fleetcast.errors import OperatorError, StoreDamaged, StoreError, StoreMissing
from fleetcast.forecast.serving.clock import SharedClock
from fleetcast.forecast.serving.models import MODELS, ModelFiles, RecordModels
from fleetcast.forecast.serving.store import PredictionStore
from fleetcast.forecast.serving.tables import TABLES
from fleetcast.installation import cluster_audit
from fleetcast.installation.cluster_audit import ClusterAudit
from fleetcast.installation.cluster_handover import ClusterHandover, database_check
from fleetcast.installation.cluster_node import ClusterNode
from fleetcast.security.handover import UNSETTLED, KnownKeys
from fleetcast.security.master_key import load_master_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.accounts.audited import Audit
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.metrics import AccountRequests

logger = logging.getLogger(__name__)


class ClusterStores:
    """Stores in PostgreSQL and an object store."""

    is_shared = True

    def __init__(
        self, directory: DataDirectory, settings: Settings, master_key: bytes, *, follow: bool
    ) -> None:
        self._directory = directory
        self._settings = settings
        self.cluster = open_cluster(settings.store, directory.cache / "objects")
        self.handover = ClusterHandover(self.cluster, directory)
        known = KnownKeys(directory.origin, settings.security, self.handover)
        self._first_key = master_key
        self._master_key = MasterKeys(master_key, known)
        self._node = ClusterNode(self.cluster, directory)
        accounts = Records.replica(
            *(self.cluster, "accounts", SPACES, self._master_key),
            follow=follow,
            counted=(COUNTED, directory.accounts_revision(settings)),
        )
        self.control = ControlStore(accounts)
        self._usage = ControlStore(self._records("usage", SPACES))

    @cached_property
    def engine(self) -> ClusterEngine:
        """Telemetry of all tenants."""
        return ClusterEngine(self.cluster, self._master_key, self._accounts_known)

    @cached_property
    def predictions(self) -> PredictionStore:
        """Forecasts, and the records and models that serve them."""
        models = RecordModels(self._models, ModelFiles(self._directory.cache / "models"))
        records = self._records("forecasts", TABLES)
        clock = SharedClock(self.cluster.database_now_us)
        return PredictionStore(records, models, clock=clock)

    def prepare(self) -> None:
        """Seals the unsealed records of fleetcast 0.3.0, once, and checks the accounts.

        Raises `OperatorError` for another installation or master key, `ControlStoreUnavailable`,
        `StoreError`.
        """
        handover = self.handover.read()
        key = self._first_key
        self._check([key] if handover is None else handover.keys(key))
        if not self.control.ask(Records.is_sealed):
            for account_id in self.control.ask(Records.unsealed_accounts):
                with suppress(StoreMissing, StoreDamaged):  # opening the plane reports it
                    self.engine.bind_plane(account_id)
            self.predictions.take_over()
            self._models.take_over([])
            self._lines.take_over(cluster_audit.FACT_KEYS)
            for store in (self._usage, self.control):
                store.ask(lambda records: records.take_over([]))
        self.control.ask(Records.check)

    def refuse_turn(self) -> None:
        """Raises `OperatorError` if the master key turns, or has turned without this node.

        Raises `StoreError`.
        """
        if self.handover.read() is not None:
            raise OperatorError(UNSETTLED)
        self._check([load_master_key(self._directory.origin, self._settings.security)])

    def planes(self) -> list[str]:
        """Returns the accounts of all planes. Raises `StoreError`."""
        return sorted(self.cluster.plane_states())

    def turn_records(self) -> None:
        """Seals all records but accounts under the newest master key.

        Raises `PredictionStoreUnavailable`, `StoreError`.
        """
        self.predictions.turn()
        for records in (self._models, self._lines, self._usage.records):
            records.turn([])

    def usage(self, counted: AccountRequests, run: str) -> Usage:
        """Returns the requests of accounts on all nodes; `counted` has the requests of this run."""
        return Usage(self._usage, counted, run, self._directory.node_id())

    def audit(self) -> Audit:
        """Returns a function that notes changes as records."""
        return self._audit.record

    def follower(self) -> ClusterAudit:
        """Returns a follower that repeats the changes that no node has repeated."""
        return self._audit

    def forget(self, account_id: str) -> None:
        """Deletes forecasts and usage of a deleted account.

        Raises `ControlStoreUnavailable`, `PredictionStoreUnavailable`.
        """
        self.predictions.forget(account_id)
        with self._usage.write() as view:
            for key in UsageRecord.all(view, account_id):
                UsageRecord.delete(view, key)

    def probe_reads(self) -> None:
        """Raises `StoreError` if the database does not answer."""
        self.cluster.database_now_us()

    def probe_writes(self) -> None:
        """Raises `StoreError` if the database takes no changes, or this node must not serve."""
        self.cluster.probe_writes(self._directory.node_id())
        self._node.check()

    def take_node_id(self) -> None:
        """Takes this node's id when the service begins to serve.

        Raises `StoreError`, and `OperatorError` if another process serves with the id.
        """
        self._node.take_node_id()

    def beat(self) -> None:
        """Notes that this node serves. Raises `StoreError`, `OperatorError`."""
        self._node.beat()

    def prefers(self, account_id: str) -> bool:
        """Returns true if this node comes first for the upkeep of an account's plane."""
        return self._node.prefers(account_id)

    def sweep(self) -> None:
        """Removes log, objects and names that no node needs. Raises `StoreError`."""
        hours, objects, damaged = self.cluster.sweep()
        if hours or objects:
            logger.info("swept", extra={"hours": hours, "objects": objects})
        if damaged:
            logger.error("the object store lacks segments", extra={"accounts": damaged})

    def gauges(self) -> dict[str, int]:
        """Returns the state of database, objects and cache by the names of gauges.

        The values of a database that does not answer are left out.
        """
        found = {"fleetcast_database_up": 0, "fleetcast_objects_up": 0}
        with suppress(StoreError):
            if (facts := self.cluster.facts()) is not None:
                _, _, standbys, size, _, (sessions, sessions_max), _, hours = facts
                found |= {
                    "fleetcast_database_up": 1,
                    "fleetcast_database_standbys": standbys,
                    "fleetcast_database_bytes": size,
                    "fleetcast_database_sessions": sessions,
                    "fleetcast_database_sessions_max": sessions_max,
                    "fleetcast_database_log_hours": hours,
                    "fleetcast_damaged_stores": len(self.cluster.damaged()),
                }
        with suppress(StoreError):
            self.cluster.reach_objects()
            found["fleetcast_objects_up"] = 1
        with suppress(OSError):
            pieces = (self._directory.cache / "objects").iterdir()
            found["fleetcast_object_cache_bytes"] = sum(piece.stat().st_size for piece in pieces)
        return found

    def close(self) -> None:
        """Closes planes and stops listening for changes."""
        if "engine" in self.__dict__:
            self.engine.close()
        self.control.close()

    def _accounts_known(self) -> set[str] | None:
        """Returns the accounts of all tenants, or `None` if they cannot be read now."""
        try:
            return {tenant.account_id for tenant in self.control.tenants()}
        except ControlStoreUnavailable:
            return None

    @cached_property
    def _audit(self) -> ClusterAudit:
        return ClusterAudit(self._lines)

    @cached_property
    def _lines(self) -> Records:
        return self._records("audit", cluster_audit.SPACES)

    @cached_property
    def _models(self) -> Records:
        return self._records("models", (MODELS,))

    def _check(self, keys: Sequence[bytes]) -> None:
        """Raises `OperatorError` for another installation or master key, `StoreError`."""
        checks = [database_check(key) for key in keys]
        try:
            self.cluster.check(self._settings.service.environment, checks)
        except ValueError as error:
            raise OperatorError(str(error)) from None

    def _records(self, name: str, spaces: Sequence[str]) -> Records:
        return Records.in_cluster(self.cluster, name, spaces, self._master_key)


def install(directory: DataDirectory, settings: Settings, master_key: bytes) -> bool:
    """Makes an installation in the database. Returns false if it joins an existing installation.

    Raises `StoreError`, and `OperatorError` if the other has another environment or master key.
    """
    cluster = open_cluster(settings.store, directory.cache / "objects")
    try:
        is_new = cluster.install(settings.service.environment, database_check(master_key))
    except ValueError as error:
        message = (
            f"{error}: to join it, give its environment with --environment, and with --master-key"
            " a copy of the master key of one of its nodes"
        )
        raise OperatorError(message) from None
    if not is_new and ClusterHandover(cluster, directory).read() is not None:
        raise OperatorError(UNSETTLED)
    return is_new
