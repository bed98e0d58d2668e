"""Stores of one machine, in its data directory."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStore, Usage
from fleetcast.engine import Engine, MasterKeys, Records
from fleetcast.errors import StoreDamaged, StoreMissing
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.free_space import check_room
from fleetcast.installation.audit_log import AuditLogFollower, record
from fleetcast.security.handover import HandoverFile, KnownKeys

if TYPE_CHECKING:
    from fleetcast.accounts.audited import Audit
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.metrics import AccountRequests


class EmbeddedStores:
    """Stores in a data directory."""

    is_shared = False
    """True if other nodes use the stores as well."""

    def __init__(self, directory: DataDirectory, settings: Settings, master_key: bytes) -> None:
        self._directory = directory
        self.handover = HandoverFile(directory.origin)
        known = KnownKeys(directory.origin, settings.security, self.handover)
        self._master_key = MasterKeys(master_key, known)
        revision = directory.accounts_revision(settings)
        self.control = ControlStore.embedded(directory.control, self._master_key, revision)

    @cached_property
    def engine(self) -> Engine:
        """Telemetry of all tenants."""
        return Engine(self._directory.planes, self._master_key)

    @cached_property
    def predictions(self) -> EmbeddedPredictions:
        """Forecasts, and the records and models that serve them."""
        return EmbeddedPredictions(self._directory.forecast, self._master_key)

    def prepare(self) -> None:
        """Seals the unsealed records of fleetcast 0.3.0, once, and checks the accounts.

        Raises `OperatorError` if the stores were made with another master key. Raises
        `ControlStoreUnavailable` if accounts are damaged or an older copy was put back, and
        `StoreError`.
        """
        self.control.verify_master_key()
        if not self.control.ask(Records.is_sealed):
            for account_id in self.control.ask(Records.unsealed_accounts):
                with suppress(StoreMissing, StoreDamaged):  # opening the plane reports it
                    self.engine.bind_plane(account_id)
            self.predictions.take_over()
            self.control.ask(lambda records: records.take_over([]))
        self.control.ask(Records.check)

    def refuse_turn(self) -> None:
        """Does no work: the lock of the data directory keeps the master key from turning."""

    def planes(self) -> list[str]:
        """Returns the accounts of all planes. Raises `OSError`."""
        return sorted(path.name for path in self._directory.planes.iterdir())

    def turn_records(self) -> None:
        """Seals all records but accounts under the newest master key.

        Raises `PredictionStoreUnavailable`.
        """
        self.predictions.turn()

    def usage(self, counted: AccountRequests, run: str) -> Usage:
        """Returns the requests of accounts; `counted` has the requests of this run."""
        return Usage(self.control, counted, run)

    def audit(self) -> Audit:
        """Returns a function that notes changes in a file."""
        return partial(record, self._directory.audit_log)

    def follower(self) -> AuditLogFollower:
        """Returns a follower that repeats new lines of the file."""
        return AuditLogFollower(self._directory.audit_log)

    def forget(self, account_id: str) -> None:
        """Deletes the forecasts of a deleted account. Raises `PredictionStoreUnavailable`."""
        self.predictions.forget(account_id)

    def probe_reads(self) -> None:
        """Raises `OSError` if the folder of planes cannot be read."""
        with os.scandir(self._directory.planes) as entries:  # one entry: there may be thousands
            next(entries, None)

    def probe_writes(self) -> None:
        """Raises `OSError` if the disk is full, which stops writes but not reads."""
        check_room(self._directory.planes)

    def take_node_id(self) -> None:
        """Does no work: the lock of the data directory keeps a second service out."""

    def beat(self) -> None:
        """Does no work: there are no other nodes."""

    def prefers(self, account_id: str) -> bool:
        """Returns true, because there are no other nodes."""
        del account_id
        return True

    def sweep(self) -> None:
        """Does no work: upkeep of each plane removes old data."""

    def gauges(self) -> dict[str, int]:
        """Returns no gauges: no store is shared."""
        return {}

    def close(self) -> None:
        """Closes all open stores."""
        if "predictions" in self.__dict__:
            self.predictions.close()
        if "engine" in self.__dict__:
            self.engine.close()
        self.control.close()
