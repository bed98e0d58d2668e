"""The control store: tenants and keys in an LMDB environment of its own."""

from __future__ import annotations

import hmac
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from fleetcast.accounts.tables import ControlStoreUnavailable, Tables
from fleetcast.errors import OperatorError
from fleetcast.lmdb_store import LmdbStore, LmdbUnavailable
from fleetcast.security.master_key import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fleetcast.lmdb_store import View

Result = TypeVar("Result")

_FORMAT = b"fleetcast control 1"
_TABLES = ("tenants", "keys", "usage")
_MASTER_KEY_KEY = b"master-key-check"
_MASTER_KEY_LABEL = "fleetcast control store check 1"


class ControlStore:
    """The tenants and keys of one data directory. Safe to share between threads, see `LmdbStore`.

    When the files are damaged or gone a use raises `ControlStoreUnavailable`, and the next use
    opens them anew.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lmdb = LmdbStore(directory, _TABLES, _FORMAT)

    @staticmethod
    def create(directory: Path, master_key: bytes) -> None:
        """Makes an empty store bound to the master key.

        Raises `OSError`, `ControlStoreUnavailable`.
        """
        store = LmdbStore(directory, _TABLES, _FORMAT)
        try:
            store.create({_MASTER_KEY_KEY: derive(master_key, _MASTER_KEY_LABEL)})
        except LmdbUnavailable as error:
            message = f"the control store in {directory} cannot be made: {error}"
            raise ControlStoreUnavailable(message) from error

    def open_ahead(self) -> None:
        """Opens the files before the first use, so that no read waits for a writer then."""
        self._lmdb.open_ahead()

    def read(self) -> AbstractContextManager[Tables]:
        """One consistent view. Raises `ControlStoreUnavailable`."""
        return self._transaction(write=False)

    def ask(self, question: Callable[[Tables], Result]) -> Result:
        """As `read`, for the question of each request. Raises `ControlStoreUnavailable`."""

        def asked(view: View) -> Result:
            return question(Tables(view.transaction, *view.tables.values()))

        try:
            return self._lmdb.ask(asked)
        except LmdbUnavailable as error:
            raise self._unavailable(error) from error

    def write(self) -> AbstractContextManager[Tables]:
        """One change, durable when the block ends, undone where it raises.

        Raises `ControlStoreUnavailable`.
        """
        return self._transaction(write=True)

    def verify_master_key(self, master_key: bytes) -> None:
        """Raises `OperatorError` where the store was made with another master key."""
        with self.read() as tables:
            stored = tables.own(_MASTER_KEY_KEY)
        if not hmac.compare_digest(stored, derive(master_key, _MASTER_KEY_LABEL)):
            made = f"the one that {self._directory.parent} was made with"
            message = f"the master key is not {made}: put back the copy of that one"
            raise OperatorError(message)

    def close(self) -> None:
        """Releases the files; a later use opens them again."""
        self._lmdb.close()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Tables]:
        try:
            with self._lmdb.transaction(write=write) as view:
                yield Tables(view.transaction, *view.tables.values())
        except LmdbUnavailable as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: LmdbUnavailable) -> ControlStoreUnavailable:
        message = f"the control store in {self._directory} is unavailable: {error}"
        return ControlStoreUnavailable(message)
