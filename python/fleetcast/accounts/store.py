"""The control store: tenants and keys, in records of their own."""

from __future__ import annotations

import hmac
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from fleetcast.accounts.tables import SPACES, ControlStoreUnavailable, Tables
from fleetcast.engine import Records
from fleetcast.errors import OperatorError, RecordsUnavailable
from fleetcast.security.master_key import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


Result = TypeVar("Result")

MASTER_KEY_KEY = b"master-key-check"
"""The key, among what a store says of itself, of a hash that tells its master key from others."""
_FORMAT = b"fleetcast control 1"
_MASTER_KEY_LABEL = "fleetcast control store check 1"


class ControlStore:
    """The tenants and keys of one installation. Safe to share between threads.

    A use raises `ControlStoreUnavailable` where the records cannot be had, and the next use tries
    again.
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    @staticmethod
    def embedded(directory: Path) -> ControlStore:
        """The store in `directory`."""
        return ControlStore(Records.in_folder(directory, SPACES, _FORMAT))

    @staticmethod
    def create(directory: Path, master_key: bytes) -> ControlStore:
        """Makes an empty store in `directory`, bound to the master key.

        Raises `ControlStoreUnavailable`.
        """
        facts = {MASTER_KEY_KEY: master_key_check(master_key)}
        try:
            Records.create(directory, SPACES, _FORMAT, facts)
        except RecordsUnavailable as error:
            message = f"the control store in {directory} cannot be made: {error}"
            raise ControlStoreUnavailable(message) from error
        return ControlStore.embedded(directory)

    def read(self) -> AbstractContextManager[Tables]:
        """One consistent view. Raises `ControlStoreUnavailable`."""
        return self._transaction(write=False)

    def ask(self, question: Callable[[Tables], Result]) -> Result:
        """As `read`, for the question of each request. Raises `ControlStoreUnavailable`."""
        try:
            with self._records.begin(write=False) as view:
                return question(Tables(view))
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def renew(self) -> bool:
        """Looks for changes that were not seen yet; true where there may be some.

        Raises `ControlStoreUnavailable`.
        """
        try:
            return self._records.renew()
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def write(self) -> AbstractContextManager[Tables]:
        """One change, durable when the block ends, undone where it raises.

        Raises `ControlStoreUnavailable`.
        """
        return self._transaction(write=True)

    def verify_master_key(self, master_key: bytes) -> None:
        """Raises `OperatorError` where the store was made with another master key."""
        with self.read() as tables:
            stored = tables.own(MASTER_KEY_KEY)
        if not hmac.compare_digest(stored, master_key_check(master_key)):
            made = f"the one that the control store in {self._records.place} was made with"
            message = f"the master key is not {made}: put back the copy of that one"
            raise OperatorError(message)

    def close(self) -> None:
        """Releases what is open; a later use opens it again."""
        self._records.close()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Tables]:
        try:
            with self._records.begin(write=write) as view:
                yield Tables(view)
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: RecordsUnavailable) -> ControlStoreUnavailable:
        message = f"the control store in {self._records.place} is unavailable: {error}"
        return ControlStoreUnavailable(message)


def master_key_check(master_key: bytes) -> bytes:
    """A hash of the master key that tells it from others, and nothing else."""
    return derive(master_key, _MASTER_KEY_LABEL)
