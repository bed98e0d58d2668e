"""Checks of a backup: each byte against its hash, and each plane opened and counted.

The backup is not changed. A check opens a copy of a plane in the folder for temporary files: copies
of names and log, and links to the segments.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.backup.scratch import scratch_folder
from fleetcast.engine import Engine
from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from fleetcast.backup.listing import Listing, SavedTenant
    from fleetcast.engine import SavedFile, Verified


@dataclass(frozen=True)
class Checked:
    """Result of a check: a tenant of a backup, or `None` for files that belong to no tenant.

    `found` is `None` if the plane was not opened. `answers` is the hash over all answers; `None` if
    a part is damaged.
    """

    tenant: SavedTenant | None
    found: Verified | None
    damages: list[str]
    answers: int | None = None


def check(
    folder: Path, listing: Listing, master_key: bytes | None, names: Collection[str]
) -> Iterator[Checked]:
    """Checks some tenants of a backup, or all; without a master key no plane is opened.

    Raises `OperatorError`, `OSError`.
    """
    if master_key is not None:
        listing.check_master_key(master_key)
    yield Checked(None, None, _file_damages(folder, iter(listing.installation.values())))
    for tenant in listing.tenants:
        if names and tenant.record.name not in names:
            continue
        files = (file._replace(name=f"{tenant.folder}/{file.name}") for file in tenant.plane.files)
        damages = _file_damages(folder, files)
        if damages or master_key is None:
            yield Checked(tenant, None, damages)
        else:
            yield _checked(folder, tenant, master_key)


def answers_of(folder: Path, tenant: SavedTenant, master_key: bytes) -> int:
    """Returns the hash over all scans of a saved tenant. Raises `StoreError`."""
    with _opened(folder, tenant, master_key) as engine:
        return engine.answers_hash(tenant.record.account_id, tenant.record.name)


def _file_damages(folder: Path, files: Iterator[SavedFile]) -> list[str]:
    return [damage for file in files if (damage := _file_damage(folder, file))]


def _file_damage(folder: Path, file: SavedFile) -> str | None:
    try:
        with (folder / file.name).open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").digest()
            length = content.tell()
    except OSError as error:
        return f"{file.name}: {error.strerror}"
    if length != file.length:
        return f"{file.name}: it has {length} bytes, not {file.length}"
    return None if digest == file.sha256 else f"{file.name}: its SHA-256 is another"


def _checked(folder: Path, tenant: SavedTenant, master_key: bytes) -> Checked:
    account_id, saved = tenant.record.account_id, tenant.plane
    try:
        with _opened(folder, tenant, master_key) as engine:
            found = engine.verify(account_id)
            if found.damages:
                return Checked(tenant, found, found.damages)
            if (found.rows, found.values) != (saved.rows, saved.values):
                damage = (
                    f"it holds {found.rows} rows and {found.values} values,"
                    f" not {saved.rows} and {saved.values}"
                )
                return Checked(tenant, found, [damage])
            answers = engine.answers_hash(account_id, tenant.record.name)
            return Checked(tenant, found, [], answers)
    except StoreError as error:
        return Checked(tenant, None, [str(error)])


@contextmanager
def _opened(folder: Path, tenant: SavedTenant, master_key: bytes) -> Iterator[Engine]:
    """Opens an engine with the plane of a saved tenant, and compares the plane.

    Raises `StoreError`.
    """
    account_id = tenant.record.account_id
    with scratch_folder() as scratch:
        engine = Engine(scratch, master_key)
        engine.restore_plane(account_id, folder / tenant.folder, tenant.plane, borrow=True)
        yield engine
