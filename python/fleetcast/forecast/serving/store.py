"""Where forecasts, and everything about serving them, lie: beside the planes, for all processes.

What says something of a tenant is sealed under that tenant's key and found under a keyed hash; it
ends with the key. Releases are the installation's and lie open.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.lmdb_store import LmdbStore, LmdbUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetcast.lmdb_store import View

_FORMAT = b"fleetcast predictions 1"
_TABLES = ("rollouts", "assignments", "leases", "cooldowns", "values", "pending")
_FENCE = b"fence"
_BATCH_MAX = 1_000


class PredictionStoreUnavailable(Exception):
    """The latest-value store cannot be read or written now; the message says why."""


class Records:
    """The tables as one transaction sees them; keys and values are bytes."""

    def __init__(self, view: View) -> None:
        self._view = view

    def get(self, table: str, key: bytes) -> bytes | None:
        """One value."""
        value = self._view.transaction.get(key, db=self._view.tables[table])
        return None if value is None else bytes(value)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Adds or replaces one."""
        self._view.transaction.put(key, value, db=self._view.tables[table])

    def delete(self, table: str, key: bytes) -> None:
        """Deletes one, if it is there."""
        self._view.transaction.delete(key, db=self._view.tables[table])

    def under(self, table: str, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with a prefix, ascending, and their values."""
        cursor = self._view.transaction.cursor(self._view.tables[table])
        found = cursor.set_range(prefix)
        while found and bytes(cursor.key()).startswith(prefix):
            yield bytes(cursor.key()), bytes(cursor.value())
            found = cursor.next()

    def next_fence(self) -> int:
        """A number that no lease has had, greater than all before."""
        transaction = self._view.transaction
        number = int.from_bytes(bytes(transaction.get(_FENCE) or b""), "big") + 1
        transaction.put(_FENCE, number.to_bytes(8, "big"))
        return number


class PredictionStore:
    """The store of one data directory. Safe to share between threads; use it after a fork only."""

    def __init__(self, directory: Path) -> None:
        self.models = directory / "models"
        self._lmdb = LmdbStore(directory / "store", _TABLES, _FORMAT)

    def ensure(self) -> None:
        """Makes the store where there is none. Raises `OSError`, `PredictionStoreUnavailable`."""
        if self._lmdb.directory.exists():
            return
        # One after the other: parents that `mkdir` makes on the way get the usual mode.
        self.models.parent.mkdir(mode=0o700, exist_ok=True)
        self.models.mkdir(mode=0o700, exist_ok=True)
        try:
            self._lmdb.create()
        except LmdbUnavailable as error:
            message = f"{self._lmdb.directory} cannot be made: {error}"
            raise PredictionStoreUnavailable(message) from error

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

    def lacks_release(self, family: str) -> bool:
        """Whether a family never had one. Raises `PredictionStoreUnavailable`."""
        with self.read() as records:
            return records.get("rollouts", rollout_key(family)) is None

    def has_due(self, now_ns: int) -> bool:
        """Whether some forecast can be scored. Raises `PredictionStoreUnavailable`."""
        with self.read() as records:
            first = next(records.under("pending", b""), None)
        return first is not None and first[0] < now_ns.to_bytes(8, "big")

    def ping(self) -> None:
        """Raises `PredictionStoreUnavailable` where it cannot be read."""
        with self.read() as records:
            records.get("rollouts", rollout_key("ping"))

    def forget(self, account_id: str) -> None:
        """Deletes what is kept of a deleted account. Raises `PredictionStoreUnavailable`."""
        prefix = f"{account_id}/".encode()
        for table in ("assignments", "leases", "cooldowns", "values", "pending"):
            keys = [b""]
            while keys:
                with self.write() as records:
                    keys = [key for key, _ in _first(records.under(table, prefix))]
                    for key in keys:
                        records.delete(table, key)

    def close(self) -> None:
        """Releases the files; a later use opens them again."""
        self._lmdb.close()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Records]:
        try:
            with self._lmdb.transaction(write=write) as view:
                yield Records(view)
        except LmdbUnavailable as error:
            message = f"the prediction store {self._lmdb.directory} is unavailable: {error}"
            raise PredictionStoreUnavailable(message) from error


def rollout_key(family: str, rollout_id: str | None = None) -> bytes:
    """Of one rollout of a family, or of the one in force."""
    return f"{family}=".encode() if rollout_id is None else f"{family}/{rollout_id}".encode()


def encode(document: object) -> bytes:
    """A record in compact JSON."""
    return json.dumps(document, separators=(",", ":")).encode()


def _first(pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for _, pair in zip(range(_BATCH_MAX), pairs, strict=False):
        yield pair
