"""The file that hands a new master key to the holders of the old key, and the other way around.

It exists while the master key turns. Each of the two keys opens it and gives the other key, so
stored bytes that are sealed under either key can be opened. Without the file, the old key opens
nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from fleetcast.engine import open_secret, seal_secret
from fleetcast.errors import OperatorError, StoreDamaged
from fleetcast.security.master_key import key_id, load_master_key, sync_folder, write_private

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

    @staticmethod
    def of(old: bytes, new: bytes, file: Path | None) -> Handover:
        """Makes the handover from one key to another."""
        sealed = seal_secret(new, _PLACE, old).hex(), seal_secret(old, _PLACE, new).hex()
        name = None if file is None else str(file)
        return Handover(key_id(old), key_id(new), *sealed, name)

    @staticmethod
    def read(root: Path) -> Handover | None:
        """Reads the file of a data directory; `None` if no key turns. Raises `OperatorError`."""
        path = root / HANDOVER_FILE
        try:
            return Handover(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError):
            message = f"{path} cannot be read or is damaged"
            raise OperatorError(message) from None

    def write(self, root: Path) -> None:
        """Writes the file, durably and as the owner of the directory's. Raises `OSError`."""
        new = root / f"{HANDOVER_FILE}.new"
        new.unlink(missing_ok=True)  # of a process that was killed here
        write_private(new, json.dumps(asdict(self)).encode())
        if os.geteuid() == 0:
            os.chown(new, root.stat().st_uid, root.stat().st_gid)
        new.replace(root / HANDOVER_FILE)
        sync_folder(root)

    @staticmethod
    def end(root: Path) -> None:
        """Removes the file, durably: from now on the old key opens nothing. Raises `OSError`."""
        (root / HANDOVER_FILE).unlink()
        sync_folder(root)

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


class KnownKeys:
    """The master keys in force, for stores that stay open while the key turns."""

    def __init__(self, root: Path, settings: Security) -> None:
        self._root = root
        self._settings = settings
        self._seen: tuple[Handover, list[bytes]] | None = None

    def __call__(self) -> list[bytes]:
        """Returns the keys, newest first; none if they cannot be read now."""
        try:
            # Read before the key: if a turn ends in between, the key that is read next is the new.
            handover = Handover.read(self._root)
            if handover is None:
                self._seen = None
                return [load_master_key(self._root, self._settings)]
            if self._seen is None or self._seen[0] != handover:  # a program may take its time
                key = load_master_key(self._root, self._settings)
                self._seen = handover, [*handover.keys(key)]
            return self._seen[1]
        except OperatorError:
            return []
