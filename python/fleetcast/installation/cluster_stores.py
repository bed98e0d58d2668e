"""Stores of an installation of many nodes, as one process of one node opens them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import structlog

from fleetcast.accounts import ControlStore, ControlStoreUnavailable, TenantList, Usage
from fleetcast.accounts.node_usage import NodeUsage
from fleetcast.accounts.store import master_key_check
from fleetcast.cluster import ClusterEngine, open_cluster
from fleetcast.engine import ControlVersion, Records
from fleetcast.errors import OperatorError
from fleetcast.forecast.serving.clock import SharedClock
from fleetcast.forecast.serving.models import ModelFiles, RecordModels
from fleetcast.forecast.serving.store import PredictionStore
from fleetcast.installation.cluster_audit import ClusterAudit
from fleetcast.installation.cluster_node import ClusterNode

if TYPE_CHECKING:
    from fleetcast.accounts.tenants import Audit
    from fleetcast.accounts.usage import Counted
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Follower

logger = structlog.get_logger(__name__)


class ClusterStores:
    """Stores in PostgreSQL and an object store."""

    is_shared = True

    def __init__(
        self, directory: DataDirectory, settings: Settings, master_key: bytes, *, follow: bool
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._master_key = master_key
        self.cluster = open_cluster(settings.store, directory.cache / "objects")
        self._node = ClusterNode(self.cluster, directory)
        self.control_version = ControlVersion()
        accounts = Records.replica(
            self.cluster, "accounts", follow=follow, news=self.control_version
        )
        self.control = ControlStore(accounts)
        self._tenants = TenantList(self.control)
        self._usage = ControlStore(Records.in_cluster(self.cluster, "usage"))

    @cached_property
    def engine(self) -> ClusterEngine:
        """Telemetry of all tenants."""
        return ClusterEngine(self.cluster, self._master_key, self._accounts_known)

    @cached_property
    def predictions(self) -> PredictionStore:
        """Forecasts and what serves them."""
        models = RecordModels(
            Records.in_cluster(self.cluster, "models"), ModelFiles(self._directory.cache / "models")
        )
        records = Records.in_cluster(self.cluster, "forecasts")
        clock = SharedClock(self.cluster.database_now_us)
        return PredictionStore(records, models, clock=clock)

    def verify_master_key(self) -> None:
        """Raises `OperatorError` for another installation or master key, `StoreError`."""
        environment = self._settings.service.environment
        try:
            self.cluster.check(environment, master_key_check(self._master_key))
        except ValueError as error:
            raise OperatorError(str(error)) from None

    def usage(self, counted: Counted, run: str) -> Usage:
        """Requests of accounts on all nodes, with those that `counted` has of the run here."""
        return NodeUsage(self._usage, counted, run, self._directory.node_id())

    def audit(self) -> Audit:
        """Notes changes as records."""
        return self._audit.record

    def follower(self) -> Follower:
        """Repeats those that no node has repeated."""
        return self._audit

    def forget(self, account_id: str) -> None:
        """Deletes forecasts and usage.

        Raises `ControlStoreUnavailable`, `PredictionStoreUnavailable`.
        """
        self.predictions.forget(account_id)
        with self._usage.write() as tables:
            tables.delete_usage(account_id)

    def probe_reads(self) -> None:
        """Raises `StoreError`."""
        self.cluster.database_now_us()

    def probe_writes(self) -> None:
        """Raises `RecordsUnavailable`, and `StoreError` where this node must not serve."""
        with self._probe.begin(write=True):
            pass
        self._node.check()

    def claim(self) -> None:
        """Takes this node's id, as it begins to serve.

        Raises `OperatorError` where another process serves by it, `StoreError`.
        """
        self._node.claim()

    def beat(self) -> None:
        """Notes that this node serves. Raises `StoreError`, `OperatorError`."""
        self._node.beat()

    def prefers(self, account_id: str) -> bool:
        """True where this node comes first at the upkeep of an account's plane."""
        return self._node.prefers(account_id)

    def sweep(self) -> None:
        """Removes log, objects and names that are over. Raises `StoreError`."""
        hours, objects = self.cluster.sweep()
        if hours or objects:
            logger.info("swept", hours=hours, objects=objects)

    def close(self) -> None:
        """Closes planes, and asks for no more news."""
        if "engine" in self.__dict__:
            self.engine.close()
        self.control.close()

    def _accounts_known(self) -> set[str] | None:
        """Accounts of all tenants; `None` where that cannot be known now."""
        try:
            return {tenant.account_id for tenant in self._tenants.read()}
        except ControlStoreUnavailable:
            return None

    @cached_property
    def _audit(self) -> ClusterAudit:
        return ClusterAudit(Records.in_cluster(self.cluster, "audit"))

    @cached_property
    def _probe(self) -> Records:
        return Records.in_cluster(self.cluster, "probe")


def install(directory: DataDirectory, settings: Settings, master_key: bytes) -> bool:
    """Makes an installation in the database, or joins the one that is there: false.

    Raises `OperatorError` where that has another environment or master key, `StoreError`.
    """
    cluster = open_cluster(settings.store, directory.cache / "objects")
    try:
        return cluster.install(settings.service.environment, master_key_check(master_key))
    except ValueError as error:
        message = (
            f"{error}: to join it, give its environment with --environment, and with --master-key"
            " a copy of the master key of one of its nodes"
        )
        raise OperatorError(message) from None
