"""Stores in a data directory: those of one machine."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStore, Usage
from fleetcast.engine import Engine
from fleetcast.errors import StoreDamaged, StoreMissing
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.free_space import check_room
from fleetcast.installation.audit_log import AuditLog, AuditLogFollower

if TYPE_CHECKING:
    from fleetcast.accounts.tenants import Audit
    from fleetcast.accounts.usage import Counted
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Follower


class EmbeddedStores:
    """Stores in a data directory."""

    is_shared = False

    def __init__(self, directory: DataDirectory, settings: Settings, master_key: bytes) -> None:
        self._directory = directory
        self._master_key = master_key
        revision = directory.accounts_revision(settings)
        self.control = ControlStore.embedded(directory.control, master_key, revision)

    @cached_property
    def engine(self) -> Engine:
        """Telemetry of all tenants."""
        return Engine(self._directory.planes, self._master_key)

    @cached_property
    def predictions(self) -> EmbeddedPredictions:
        """Forecasts and what serves them."""
        return EmbeddedPredictions(self._directory.forecast, self._master_key)

    def prepare(self) -> None:
        """Raises `OperatorError`, `ControlStoreUnavailable`, `StoreError`."""
        self.control.verify_master_key()
        if not self.control.is_sealed():
            for account_id in self.control.unsealed_accounts():
                with suppress(StoreMissing, StoreDamaged):  # whoever opens it says so
                    self.engine.bind_plane(account_id)
            self.predictions.take_over()
            self.control.take_over()
        self.control.check()

    def usage(self, counted: Counted, run: str) -> Usage:
        """Requests of accounts, with those that `counted` has of the run."""
        return Usage(self.control, counted, run)

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
        check_room(self._directory.planes)

    def claim(self) -> None:
        """Nothing: the lock of the data directory does it."""

    def beat(self) -> None:
        """Nothing: nobody listens."""

    def prefers(self, account_id: str) -> bool:
        """True: there is no other node."""
        del account_id
        return True

    def sweep(self) -> None:
        """Nothing: upkeep of each plane does it."""

    def close(self) -> None:
        """Closes all that was opened."""
        if "predictions" in self.__dict__:
            self.predictions.close()
        if "engine" in self.__dict__:
            self.engine.close()
        self.control.close()
