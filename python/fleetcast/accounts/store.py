"""The control store: tenants and keys, in records of their own."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from fleetcast.accounts.records import Tenant
from fleetcast.accounts.tables import (
    COUNTED,
    SPACES,
    TENANTS,
    ControlStoreUnavailable,
    Tables,
    decode,
)
from fleetcast.engine import Records
from fleetcast.errors import OperatorError, RecordsUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


Result = TypeVar("Result")

REVISION_FILE = "accounts.revision"
"""The file that tells if an older copy of a control store was put back, unless it is elsewhere."""
_NAME = "fleetcast control 1"


class ControlStore:
    """The tenants and keys of one installation. Safe to share between threads.

    A use raises `ControlStoreUnavailable` where the records cannot be had, and the next use tries
    again.
    """

    def __init__(self, records: Records) -> None:
        self.records = records
        """The records under it."""

    @staticmethod
    def embedded(directory: Path, master_key: bytes, revision: Path | None = None) -> ControlStore:
        """The store in `directory`.

        `revision` is the file that tells if an older copy was put back, as a rule beside it.
        """
        counted = COUNTED, revision or directory.with_name(REVISION_FILE)
        return ControlStore(
            Records.in_folder(directory, _NAME, SPACES, master_key, counted=counted)
        )

    @staticmethod
    def create(directory: Path, master_key: bytes, revision: Path | None = None) -> ControlStore:
        """Makes an empty store in `directory`. Raises `ControlStoreUnavailable`."""
        counted = COUNTED, revision or directory.with_name(REVISION_FILE)
        try:
            Records.create(directory, _NAME, SPACES, master_key, counted=counted)
        except RecordsUnavailable as error:
            message = f"the control store in {directory} cannot be made: {error}"
            raise ControlStoreUnavailable(message) from error
        return ControlStore.embedded(directory, master_key, revision)

    def read(self) -> AbstractContextManager[Tables]:
        """One consistent view. Raises `ControlStoreUnavailable`."""
        return self._transaction(write=False)

    def ask(self, question: Callable[[Tables], Result]) -> Result:
        """As `read`, for the question of each request. Raises `ControlStoreUnavailable`."""
        try:
            with self.records.begin(write=False) as view:
                return question(Tables(view))
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def renew(self) -> bool:
        """Looks for changes that were not seen yet; true where there may be some.

        Raises `ControlStoreUnavailable`.
        """
        return self._asked(self.records.renew)

    def write(self) -> AbstractContextManager[Tables]:
        """One change, durable when the block ends, undone where it raises.

        Raises `ControlStoreUnavailable`.
        """
        return self._transaction(write=True)

    def verify_master_key(self) -> None:
        """Raises `OperatorError` if the store was made with another master key."""
        if not self._asked(self.records.is_of_master_key):
            made = f"the one that the control store in {self.records.place} was made with"
            message = f"the master key is not {made}: put back the copy of that one"
            raise OperatorError(message)

    def check(self) -> None:
        """Looks at all records: each must be what was written last in its place.

        Raises `ControlStoreUnavailable`, also for an older copy of the store.
        """
        self._asked(self.records.check)

    def is_sealed(self) -> bool:
        """False for a store of fleetcast 0.3.0, or one that was never used.

        Raises `ControlStoreUnavailable`.
        """
        return self._asked(self.records.is_sealed)

    def unsealed_accounts(self) -> list[str]:
        """Accounts of a store of fleetcast 0.3.0. Raises `ControlStoreUnavailable`."""
        found = self._asked(partial(self.records.unsealed, TENANTS))
        return [decode(Tenant, value).account_id for _, value in found]

    def take_over(self) -> None:
        """Seals what fleetcast 0.3.0 wrote. Raises `ControlStoreUnavailable`."""
        self._asked(partial(self.records.take_over, []))

    def close(self) -> None:
        """Releases what is open; a later use opens it again."""
        self.records.close()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Tables]:
        try:
            with self.records.begin(write=write) as view:
                yield Tables(view)
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def _asked(self, question: Callable[[], Result]) -> Result:
        try:
            return question()
        except RecordsUnavailable as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: RecordsUnavailable) -> ControlStoreUnavailable:
        message = f"the control store in {self.records.place} is unavailable: {error}"
        return ControlStoreUnavailable(message)
