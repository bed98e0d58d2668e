"""Stores of an installation as one process opens them, by `store.backend`."""

from __future__ import annotations

import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fleetcast.accounts import ControlStore, Usage, UsageSpan
from fleetcast.config.sections import POSTGRESQL
from fleetcast.engine import Engine
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.installation.audit_log import AuditLog, AuditLogFollower
from fleetcast.lmdb_store import DATA_FILE

if TYPE_CHECKING:
    from fleetcast.accounts.tenants import Audit
    from fleetcast.accounts.usage import Counted
    from fleetcast.config import Settings
    from fleetcast.engine import ControlVersion
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.installation.directory import DataDirectory

_PROBE_BYTES = 65_536  # LMDB needs some pages to commit anything


class Follower(Protocol):
    """Repeats changes of accounts, which commands have made, in the log."""

    def follow(self) -> None:
        """Writes the new ones. Raises `OSError`, `ValueError`, `ControlStoreUnavailable`."""


class Stores(Protocol):
    """Stores of one process. Make them after a fork; nothing is opened before its first use."""

    @property
    def control(self) -> ControlStore:
        """Tenants and keys."""

    @property
    def control_version(self) -> str | ControlVersion:
        """Source of the number of the last change of accounts, for remembered decisions."""

    @property
    def engine(self) -> Engine:
        """Telemetry of all tenants."""

    @property
    def predictions(self) -> PredictionStore:
        """Forecasts and what serves them."""

    def verify_master_key(self) -> None:
        """Raises `OperatorError` where the stores were made with another master key."""

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

    def close(self) -> None:
        """Closes all that was opened; acknowledged batches are stored first."""


class EmbeddedStores:
    """Stores in a data directory."""

    def __init__(self, directory: DataDirectory, master_key: bytes) -> None:
        self._directory = directory
        self._master_key = master_key
        self.control = ControlStore.embedded(directory.control)
        self.control_version = str(directory.control / DATA_FILE)

    @cached_property
    def engine(self) -> Engine:
        """Telemetry of all tenants."""
        return Engine(self._directory.planes, self._master_key)

    @cached_property
    def predictions(self) -> EmbeddedPredictions:
        """Forecasts and what serves them."""
        return EmbeddedPredictions(self._directory.forecast)

    def verify_master_key(self) -> None:
        """Raises `OperatorError`, `ControlStoreUnavailable`."""
        self.control.verify_master_key(self._master_key)

    def usage(self, counted: Counted, run: str) -> Usage:
        """Requests of accounts, with those that `counted` has of the run."""
        return Usage(self.control, counted, run, UsageSpan(Path(self.control_version)))

    def audit(self) -> Audit:
        """Notes changes in a file."""
        return AuditLog(self._directory.audit_log).record

    def follower(self) -> Follower:
        """Repeats new lines of that file."""
        return AuditLogFollower(self._directory.audit_log)

    def forget(self, account_id: str) -> None:
        """Deletes the forecasts. Raises `PredictionStoreUnavailable`."""
        self.predictions.forget(account_id)

    def probe_reads(self) -> None:
        """Raises `OSError`."""
        with os.scandir(self._directory.planes) as entries:  # one of them: there may be thousands
            next(entries, None)

    def probe_writes(self) -> None:
        """Fails on a full disk, which stops writes but not reads. Raises `OSError`."""
        with tempfile.TemporaryFile(dir=self._directory.planes) as file:
            os.posix_fallocate(file.fileno(), 0, _PROBE_BYTES)

    def close(self) -> None:
        """Closes all that was opened."""
        if "predictions" in self.__dict__:
            self.predictions.close()
        if "engine" in self.__dict__:
            self.engine.close()
        self.control.close()


def stores_of(
    directory: DataDirectory, settings: Settings, master_key: bytes, *, follow: bool = False
) -> Stores:
    """The stores that the settings name.

    With `follow`, for processes that serve, changes of accounts by other nodes are heard of within
    a second, and looking at accounts costs no round trip. Raises `OperatorError` where this build
    cannot have them.
    """
    if settings.store.backend == POSTGRESQL:
        from fleetcast.installation.cluster_stores import ClusterStores  # noqa: PLC0415 - few need it

        return ClusterStores(directory, settings, master_key, follow=follow)
    return EmbeddedStores(directory, master_key)
