"""The store of forecasts and of serving them: beside the planes, for all processes.

Records of a tenant are sealed under that tenant's key and found under a keyed hash; they end with
the key. Releases are the installation's and lie open.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from fleetcast.forecast.serving.tables import (
    QUOTAS,
    TABLES,
    TENANT_TABLES,
    Records,
    due,
    owner,
    rollout_key,
)
from fleetcast.lmdb_store import FORMAT_KEY, LmdbStore, LmdbUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from fleetcast.forecast.serving.tables import Quota

_FORMAT = b"fleetcast predictions 2"
# Version 1 kept a record of every entity that was ever asked for; none had an age.
_FORMAT_1 = b"fleetcast predictions 1"
_RETIRED = "assignments"

_SLICE = 1_000
"""Records looked at in one transaction: bounds how long others wait for it."""
_PROBE_BYTES = 65_536  # LMDB needs some pages to commit anything


class PredictionStoreUnavailable(Exception):
    """The latest-value store cannot be read or written now; the message says why."""


class PredictionStore:
    """The store of one data directory. Safe to share between threads; use it after a fork only."""

    def __init__(self, directory: Path, quotas: Mapping[str, Quota] = QUOTAS) -> None:
        self.models = directory / "models"
        self._directory = directory
        self._quotas = quotas
        self._lmdb = LmdbStore(directory / "store", TABLES, _FORMAT)

    def ensure(self) -> None:
        """Makes the store where there is none, and takes over one of an earlier version.

        Raises `OSError`, `PredictionStoreUnavailable`.
        """
        if self._lmdb.directory.exists():
            self._take_over()
            return
        # One after the other: parents that `mkdir` makes on the way get the usual mode.
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self.models.mkdir(mode=0o700, exist_ok=True)
        try:
            self._lmdb.create()
        except LmdbUnavailable as error:
            message = f"{self._lmdb.directory} cannot be made: {error}"
            raise PredictionStoreUnavailable(message) from error

    def open_ahead(self) -> None:
        """Opens the files before the first use, so that no read waits for a writer then."""
        self._lmdb.open_ahead()

    @contextmanager
    def read(self) -> Iterator[Records]:
        """One consistent view. Raises `PredictionStoreUnavailable`."""
        with self._transaction(write=False) as records:
            yield records

    @contextmanager
    def write(self) -> Iterator[Records]:
        """One change, durable when the block ends, undone where it raises.

        Raises `PredictionStoreUnavailable`.
        """
        with self._transaction(write=True) as records:
            yield records
            records.settle()

    def lacks_release(self, family: str) -> bool:
        """True for a family that never had one. Raises `PredictionStoreUnavailable`."""
        with self.read() as records:
            return records.get("rollouts", rollout_key(family)) is None

    def has_due(self, now_ns: int) -> bool:
        """True where some forecast can be scored. Raises `PredictionStoreUnavailable`."""
        with self.read() as records:
            first = next(records.under("pending", b""), None)
        return first is not None and first[0] < due(now_ns)

    def ping(self) -> None:
        """Asks whether it can be read and written, and whether its disk has room for a change.

        It waits for whoever is writing. Raises `OSError`, `PredictionStoreUnavailable` where not.
        """
        with self.write() as records:  # which changes nothing, and so writes nothing
            records.get("rollouts", rollout_key("ping"))
        with tempfile.TemporaryFile(dir=self._directory) as file:
            os.posix_fallocate(file.fileno(), 0, _PROBE_BYTES)

    def sweep(self, table: str, first: bytes, ended: Callable[[bytes], bool]) -> bytes:
        """Deletes what has ended of the next records from a key on.

        Returns the key to go on from, empty at the end of the table. Raises
        `PredictionStoreUnavailable`.
        """
        with self.read() as records:
            looked = list(islice(records.under(table, b"", first), _SLICE))
        gone = [key for key, value in looked if ended(value)]
        if gone:
            with self.write() as records:
                for key in gone:
                    value = records.get(table, key)
                    if value is not None and ended(value):  # not renewed meanwhile
                        records.delete(table, key)
        return looked[-1][0] + b"\0" if len(looked) == _SLICE else b""

    def forget(self, account_id: str) -> None:
        """Deletes what is kept of a deleted account. Raises `PredictionStoreUnavailable`."""
        account = account_id.encode()
        for table in TENANT_TABLES:
            # Keys of open scores begin with the instant they are due.
            first = prefix = b"" if table == "pending" else account + b"/"
            keys = [first]
            while keys:
                with self.read() as records:
                    keys = [key for key, _ in islice(records.under(table, prefix, first), _SLICE)]
                self._delete(table, [key for key in keys if owner(table, key) == account])
                first = keys[-1] + b"\0" if keys else b""

    def close(self) -> None:
        """Releases the files; a later use opens them again."""
        self._lmdb.close()

    def _delete(self, table: str, keys: Iterable[bytes]) -> None:
        with self.write() as records:
            for key in keys:
                records.delete(table, key)

    def _take_over(self) -> None:
        """Empties what version 1 kept of tenants; its releases stay."""
        earlier = LmdbStore(self._lmdb.directory, (*TABLES, _RETIRED), _FORMAT_1)
        # A store that is of no use says so with its next use.
        with suppress(LmdbUnavailable), earlier.transaction(write=True) as view:
            for name in (*TENANT_TABLES, _RETIRED):
                view.transaction.drop(view.tables[name], delete=name == _RETIRED)
            view.transaction.put(FORMAT_KEY, _FORMAT)
        earlier.close()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Records]:
        try:
            with self._lmdb.transaction(write=write) as view:
                yield Records(view, self._quotas)
        except LmdbUnavailable as error:
            message = f"the prediction store {self._lmdb.directory} is unavailable: {error}"
            raise PredictionStoreUnavailable(message) from error
