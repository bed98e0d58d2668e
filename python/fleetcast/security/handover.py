"""The document that hands a new master key to the holders of the old key, and the other way around.

The document exists while the master key changes: in a file of the data directory, or in the
database of many nodes. A process that has one of the two keys opens the document and reads the
other key from it. So the process can open stored bytes under both keys. Once the document is gone,
the old key opens nothing.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from fleetcast.engine import open_secret, seal_secret
from fleetcast.errors import OperatorError, StoreDamaged, StoreError
from fleetcast.log_lines import timestamp
from fleetcast.security.master_key import key_id, load_master_key, replace_private, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.config.sections import Security

HANDOVER_FILE = "master-key.handover"
UNSETTLED = "a change of the master key is not complete: run fleetcast master-key rotate"
"""Remedy while the file exists."""

_PLACE = "master key handover"


@dataclass(frozen=True)
class Handover:
    """Two master keys, each sealed under the other."""

    old_id: str
    new_id: str
    sealed_old: str
    """The old key, sealed under the new key, in hexadecimal."""
    sealed_new: str
    """The new key, sealed under the old key, in hexadecimal."""
    file: str | None
    """The new key's own file, or `None` if the new key replaces the file of the old key."""
    begun_at: str
    begun_by: str
    """Name of the user who began the turn, for people. Example: `user 0 on db1`."""

    @staticmethod
    def of(old: bytes, new: bytes, file: Path | None) -> Handover:
        """Makes the handover from one key to another."""
        sealed = seal_secret(new, _PLACE, old).hex(), seal_secret(old, _PLACE, new).hex()
        name = None if file is None else str(file)
        who = f"user {os.getuid()} on {socket.gethostname()}"
        return Handover(key_id(old), key_id(new), *sealed, name, timestamp(), who)

    @staticmethod
    def decode(document: bytes, place: str) -> Handover:
        """Returns the handover of a document from `place`. Raises `OperatorError`."""
        try:
            return Handover(**json.loads(document))
        except (ValueError, TypeError):
            message = f"{place} is damaged"
            raise OperatorError(message) from None

    def encode(self) -> bytes:
        """Returns the document."""
        return json.dumps(asdict(self)).encode()

    def keys(self, key: bytes) -> tuple[bytes, bytes]:
        """Returns the new and the old key, from either. Raises `OperatorError`."""
        try:
            if key_id(key) == self.new_id:
                return key, open_secret(key, _PLACE, bytes.fromhex(self.sealed_old))
            return open_secret(key, _PLACE, bytes.fromhex(self.sealed_new)), key
        except (StoreDamaged, ValueError):
            message = (
                f"the master key turns from {self.old_id} to {self.new_id}, and the settings name"
                f" key {key_id(key)}: let them name one of the two"
            )
            raise OperatorError(message) from None


class HandoverPlace(Protocol):
    """The place of an installation's handover."""

    def read(self) -> Handover | None:
        """Returns the handover; `None` if no key turns. Raises `OperatorError`, `StoreError`."""

    def begin(self, old: bytes, new: bytes, file: Path | None) -> Handover:
        """Stores a handover as of `Handover.of`, durably. Returns the handover that is in force.

        Raises `OperatorError`, `StoreError`, `OSError`.
        """

    def withdraw(self) -> bool:
        """Gives up a turn before the new key seals; false if it may seal elsewhere by now."""

    def nodes_left(self) -> list[str]:
        """Returns the nodes on which the turn is still to be made. Raises `StoreError`."""

    def settle(self, new: bytes) -> list[str]:
        """Notes that the settings here name the key `new`. Returns the nodes that are left.

        If none is left, the turn ends: from then on the old key opens nothing. Raises `StoreError`,
        `OSError`.
        """


class HandoverFile:
    """The handover in a file of a data directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / HANDOVER_FILE

    def read(self) -> Handover | None:
        """Returns the handover; `None` if no key turns. Raises `OperatorError`."""
        try:
            return Handover.decode(self._path.read_bytes(), str(self._path))
        except FileNotFoundError:
            return None
        except OSError:
            message = f"{self._path} cannot be read"
            raise OperatorError(message) from None

    def begin(self, old: bytes, new: bytes, file: Path | None) -> Handover:
        """Writes the file, durably and as the owner of the directory's. Raises `OSError`.

        The caller holds the directory's lock.
        """
        handover = Handover.of(old, new, file)
        replace_private(self._path, handover.encode(), owner=self._root.stat())
        return handover

    def withdraw(self) -> bool:
        """Removes the file, durably. Raises `OSError`."""
        self._remove()
        return True

    def nodes_left(self) -> list[str]:
        """Returns no nodes, because this is the only one."""
        return []

    def settle(self, new: bytes) -> list[str]:
        """Removes the file, durably: from now on the old key opens nothing. Raises `OSError`."""
        del new  # only a database knows its key
        self._remove()
        return []

    def _remove(self) -> None:
        self._path.unlink()
        sync_folder(self._root)


class KnownKeys:
    """The master keys in force, for stores that stay open while the key turns."""

    def __init__(self, root: Path, settings: Security, place: HandoverPlace) -> None:
        self._root = root
        self._settings = settings
        self._place = place
        self._seen: tuple[Handover, list[bytes]] | None = None

    def __call__(self) -> list[bytes]:
        """Returns the keys, newest first; none if they cannot be read now."""
        try:
            # Read before the key: if a turn ends in between, the key that is read next is the new.
            handover = self._place.read()
            if handover is None:
                self._seen = None
                return [load_master_key(self._root, self._settings)]
            if self._seen is None or self._seen[0] != handover:  # a program may take its time
                key = load_master_key(self._root, self._settings)
                self._seen = handover, [*handover.keys(key)]
            return self._seen[1]
        except (OperatorError, StoreError):
            return []
