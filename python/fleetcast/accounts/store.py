"""The control store: tenants and keys, in records apart from telemetry."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from fleetcast.engine import ApiKey, ConsoleSession, OperatorToken, Records, Tenant, UsageRecord
from fleetcast.errors import OperatorError, RecordsUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleetcast.engine import MasterKeys, RecordsTransaction

T = TypeVar("T")

REVISION_FILE = "accounts.revision"
"""Name of the file that shows if an older copy of a control store was put back.

The file is next to the store unless the settings name another path.
"""
SPACES = tuple(kind.SPACE for kind in (Tenant, ApiKey, UsageRecord, OperatorToken, ConsoleSession))
COUNTED = (Tenant.SPACE, ApiKey.SPACE, OperatorToken.SPACE)
"""Spaces that decide which clients are let in. An older copy of these spaces is noticed."""
KEY_PEPPER = "fleetcast api key pepper 1"
OPERATOR_PEPPER = "fleetcast operator token pepper 1"
SESSION_PEPPER = "fleetcast console session pepper 1"
RECEIPT_KEY = "fleetcast receipt key 1"
"""Label of the secret that signs receipts."""
_SECRETS = (KEY_PEPPER, OPERATOR_PEPPER, SESSION_PEPPER, RECEIPT_KEY)
"""Labels of the secrets that stay when the master key turns.

Texts of keys, tokens and sessions are hashed under a secret of their kind.
"""
_NAME = "fleetcast control 1"


class ControlStoreUnavailable(Exception):
    """The control store cannot be read or written now; the message says why."""


class ControlStore:
    """The tenants and keys of one installation. Safe to share between threads.

    A call raises `ControlStoreUnavailable` if the records cannot be read or written. The next call
    tries again.
    """

    def __init__(self, records: Records) -> None:
        self.records = records
        """The records that the store is made of."""

    @staticmethod
    def embedded(
        directory: Path, master_key: bytes | MasterKeys, revision: Path | None = None
    ) -> ControlStore:
        """Returns the store in `directory`, which is opened at its first use.

        `revision` is the file that shows if an older copy was put back. By default the file is next
        to `directory`.
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

    @contextmanager
    def read(self) -> Iterator[RecordsTransaction]:
        """Gives one consistent view. Raises `ControlStoreUnavailable`."""
        with self._available(), self.records.begin(write=False) as view:
            yield view

    def tenants(self) -> list[Tenant]:
        """Returns all tenants, sorted by name. Raises `ControlStoreUnavailable`."""
        with self.read() as view:
            return list(Tenant.all(view).values())

    @contextmanager
    def write(self) -> Iterator[RecordsTransaction]:
        """Gives a view to change, durably.

        The change is durable when the block ends, and undone if it raises. Raises
        `ControlStoreUnavailable`.
        """
        with self._available(), self.records.begin(write=True) as view:
            yield view

    def verify_master_key(self) -> None:
        """Raises `OperatorError` if the store was made with another master key."""
        if not self.ask(Records.is_of_master_key):
            made = f"the one that the control store in {self.records.place} was made with"
            message = f"the master key is not {made}: put back the copy of that one"
            raise OperatorError(message)

    def secret(self, label: str) -> bytes:
        """Returns the secret for a purpose, which stays when the master key turns.

        Raises `ControlStoreUnavailable`.
        """
        return self.ask(lambda records: records.secret(label))

    def keep_secret(self, label: str, secret: bytes) -> None:
        """Keeps a secret of a backup. Raises `ControlStoreUnavailable`."""
        self.ask(lambda records: records.keep_secret(label, secret))

    def turn(self) -> bool:
        """Seals all records under the newest master key; returns false if that was done before.

        Raises `ControlStoreUnavailable`; no record is changed then.
        """
        return self.ask(lambda records: records.turn(_SECRETS))

    def ask(self, call: Callable[[Records], T]) -> T:
        """Returns the result of a call to the records. Raises `ControlStoreUnavailable`.

        Example: `ask(Records.check)` checks that every record is the record that was written last
        in its place.
        """
        with self._available():
            return call(self.records)

    def close(self) -> None:
        """Closes the files of the store; a later use opens them again."""
        self.records.close()

    @contextmanager
    def _available(self) -> Iterator[None]:
        try:
            yield
        except RecordsUnavailable as error:
            message = f"the control store in {self.records.place} is unavailable: {error}"
            raise ControlStoreUnavailable(message) from error
