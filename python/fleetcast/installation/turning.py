"""The turn of the master key, while the service runs. A turn that broke off goes on where it was.

A document hands each key to the holders of the other key (`security.handover`). It is written first
and removed last, so every process can open stored bytes at every moment of the turn. If there are
many nodes, the turn is made on each: a node then names the new key in its own settings, and looks
at all planes once more.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_IMODE
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError, StoreDamaged, StoreMissing
from fleetcast.installation.backend import handover_of
from fleetcast.installation.lock import held
from fleetcast.installation.opening import opened
from fleetcast.security.certificate import turn_authority
from fleetcast.security.handover import UNSETTLED, HandoverFile
from fleetcast.security.master_key import (
    MASTER_KEY_BYTES,
    key_id,
    key_line,
    load_master_key,
    read_master_key,
    replace_private,
    sync_readable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleetcast.config.sections import Security
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.opening import Installation
    from fleetcast.security.handover import Handover, HandoverPlace


@dataclass(frozen=True)
class Turned:
    """A turn. It is complete once the settings name the new key; then the old key opens nothing.

    If there are many nodes, the settings of each node have to name it.
    """

    old_id: str
    new_id: str
    file: Path
    """File of the new key."""
    tenants: int
    """Number of data keys that are wrapped by the new key."""
    unreadable: list[str]
    """Planes whose key file neither key opens."""
    nodes_left: list[str]
    """Nodes on which the turn is still to be made."""
    is_complete: bool


@contextmanager
def settled(directory: DataDirectory) -> Iterator[None]:
    """Keeps the master key from turning in the block, on this node if there are many.

    Raises `OperatorError` if a turn is under way or broke off. `refuse_turn` of the stores tells of
    a turn that another node began.
    """
    directory.require()
    with held(directory.root, "the master key is being changed: try again", shared=True):
        if HandoverFile(directory.root).read() is not None:
            raise OperatorError(UNSETTLED)
        yield


def turn(directory: DataDirectory, environ: Mapping[str, str], file: Path | None) -> Turned:
    """Turns the master key, or goes on with a turn that broke off.

    The new key is the key in `file`, which is made if it is missing. Without `file` a new key
    replaces the key in `security.master_key_file`. Raises `OperatorError`,
    `ControlStoreUnavailable`, `PredictionStoreUnavailable`, `StoreError`, `OSError`: run it again
    then.
    """
    settings = directory.settings(environ).settings
    root, security = directory.root, settings.security
    busy = "a backup, a restore, tls renew or another change of the master key is under way"
    with held(root, busy):
        place = handover_of(directory, settings)
        handover = place.read()
        if handover is None:
            handover = _begin(place, root, security, file)
        else:
            # A run that was killed may have left names that are not durable.
            own = (root / security.master_key_file).resolve()
            sync_readable(root, own.parent, directory.tls, *directory.planes.glob("*/"))
        if file is not None and handover.file != str(file):
            message = f"a change to key {handover.new_id} is not complete: end it without --to"
            raise OperatorError(message)
        if handover.file is None:
            _install(place, root, security, handover)
        with opened(directory, environ) as installation:
            return _sealed_anew(directory, installation, handover)


def _begin(place: HandoverPlace, root: Path, security: Security, file: Path | None) -> Handover:
    """Chooses the new key and writes the handover to it."""
    old = load_master_key(root, security)
    if file is None:
        if security.master_key_command:
            message = (
                "security.master_key_command prints the master key: name a file for the new key"
                " with --to FILE"
            )
            raise OperatorError(message)
        new = secrets.token_bytes(MASTER_KEY_BYTES)
    elif file.exists():
        new = read_master_key(file)
    else:
        new = secrets.token_bytes(MASTER_KEY_BYTES)
        replace_private(file, key_line(new))
    if new == old:
        message = f"{file} has the master key in force: name a file with another key, or a new file"
        raise OperatorError(message)
    return place.begin(old, new, file)


def _install(place: HandoverPlace, root: Path, security: Security, handover: Handover) -> None:
    """Replaces the key in the settings' file by the new key.

    Raises `OperatorError` if the file cannot be replaced. If the new key seals nothing yet, the
    turn is given up then.
    """
    key = load_master_key(root, security)
    if key_id(key) == handover.new_id:
        return
    if security.master_key_command:
        message = (
            f"security.master_key_command prints key {key_id(key)}: let it print key"
            f" {handover.new_id}, which has replaced the key file of another node, and try again"
        )
        raise OperatorError(message)
    new, _ = handover.keys(key)
    path = (root / security.master_key_file).resolve()
    try:
        status = path.stat()
        replace_private(path, key_line(new), owner=status, mode=S_IMODE(status.st_mode))
    except OSError as error:
        message = f"{path} cannot be replaced ({error.strerror}): "
        if read_master_key(path) == key and place.withdraw():
            message += "name another file with --to FILE"
        else:
            message += "make it writable, and try again"
        raise OperatorError(message) from error


def _sealed_anew(
    directory: DataDirectory, installation: Installation, handover: Handover
) -> Turned:
    """Seals everything under the new key, and ends the turn if the settings name it."""
    key = load_master_key(directory.root, installation.settings.security)
    new, old = handover.keys(key)
    # The accounts come first: tenants that are made from now on get keys under the new key.
    installation.store.turn()
    tenants, unreadable = 0, []
    for account_id in installation.stores.planes():
        try:
            installation.engine.rewrap_plane(account_id)
            tenants += 1
        except StoreMissing:
            pass  # deleted, or never complete
        except StoreDamaged:
            unreadable.append(account_id)
    installation.stores.turn_records()
    turn_authority(directory.tls, old, new)
    nodes_left = installation.stores.handover.settle(new) if key == new else []
    is_complete = key == new and not nodes_left
    if is_complete:
        ids = {"old_key": handover.old_id, "new_key": handover.new_id}
        installation.stores.audit()("master key rotated", **ids)
    own = directory.root / installation.settings.security.master_key_file
    file = own if handover.file is None else Path(handover.file)
    ids_and_file = handover.old_id, handover.new_id, file
    return Turned(*ids_and_file, tenants, unreadable, nodes_left, is_complete)
