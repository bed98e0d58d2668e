"""Checks of a backup: every byte against its hash, and all that a plane holds opened and counted.

Nothing is changed. What is opened is a plane beside the backup, in the folder for temporary files:
it has copies of names and log, and links to the segments.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.engine import Engine
from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fleetcast.backup.listing import Listing, SavedTenant
    from fleetcast.engine import SavedFile, Verified


@dataclass(frozen=True)
class Checked:
    """A tenant of a backup, or `None` for what is nobody's. `found` is `None` if nothing opened."""

    tenant: SavedTenant | None
    found: Verified | None
    damages: list[str]


def check(
    folder: Path, listing: Listing, master_key: bytes | None, names: Collection[str]
) -> Iterator[Checked]:
    """Checks some tenants of a backup, or all; without a master key nothing is opened.

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
        found = None
        if not damages and master_key is not None:
            found, damages = _opened(folder, tenant, master_key)
        yield Checked(tenant, found, damages)


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


def _opened(
    folder: Path, tenant: SavedTenant, master_key: bytes
) -> tuple[Verified | None, list[str]]:
    account_id, saved = tenant.record.account_id, tenant.plane
    with tempfile.TemporaryDirectory(prefix="fleetcast-verify-") as scratch:
        engine = Engine(Path(scratch), master_key)
        try:
            engine.restore_plane(account_id, folder / tenant.folder, saved, borrow=True)
            found = engine.verify(account_id)
        except StoreError as error:
            return None, [str(error)]
    damages = list(found.damages)
    if not damages and (found.rows, found.values) != (saved.rows, saved.values):
        damages.append(
            f"it holds {found.rows} rows and {found.values} values,"
            f" not {saved.rows} and {saved.values}"
        )
    return found, damages
