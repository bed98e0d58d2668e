"""Saving of an installation into a folder, while the service and commands go on.

Each tenant is saved as of one instant. The backup has every batch that was acknowledged as durable
before this instant. Files that the previous backup has are not written again. The previous backup
stays valid until the new list is in place.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fleetcast.accounts import KEY_PEPPER
from fleetcast.accounts.keys import keys_by_tenant
from fleetcast.backup.listing import LISTING_FILE, Listing, SavedTenant
from fleetcast.config import SETTINGS_FILE
from fleetcast.engine import VERSION, SavedFile, Tenant, UsageRecord, seal_secret
from fleetcast.errors import OperatorError, StoreError, StoreFull
from fleetcast.installation.lock import held
from fleetcast.installation.opening import opened
from fleetcast.installation.turning import settled
from fleetcast.security.master_key import (
    load_master_key,
    master_key_check,
    sync_folder,
    write_private,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleetcast.engine import ApiKey, SavedPlane
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.opening import Installation

LOCK_FILE = "backup.lock"
OWN_FILES = (SETTINGS_FILE, "audit.log", "tls/ca.pem", "tls/ca.key", "tls/server.pem")
"""Files of a data directory that are saved. The master key seals the authority's key."""
_OWN = "installation"
_PATIENCE_SECONDS = 600.0
_RETRY_SECONDS = 0.05


@dataclass(frozen=True)
class Summary:
    """Result of a backup. `failed` says by tenant why a plane could not be saved."""

    listing: Listing
    bytes_written: int
    bytes_linked: int
    failed: dict[str, str]


def save(directory: DataDirectory, environ: Mapping[str, str], folder: Path) -> Summary:
    """Saves the installation into `folder`, which is made, empty, or has an earlier backup.

    Raises `OperatorError`, `ControlStoreUnavailable`, `StoreFull`, `OSError`; the previous backup
    is unchanged then.
    """
    _prepare(directory, folder)
    with held(folder / LOCK_FILE, f"another backup into {folder} is under way"):
        before = Listing.read(folder) if (folder / LISTING_FILE).exists() else None
        try:
            with settled(directory), opened(directory, environ, to_read=True) as installation:
                installation.stores.refuse_turn()
                security = installation.settings.security
                key = load_master_key(directory.root, security)
                if before is not None and before.master_key_check != master_key_check(key):
                    message = f"{folder} holds a backup with another master key: use another folder"
                    raise OperatorError(message)
                return _Saving(directory, installation, folder, before, key).run()
        finally:
            # Frees the room of unlisted files, on a full disk too, and of files that the new list
            # dropped.
            with suppress(OSError, OperatorError):
                _remove_unlisted(folder)


@dataclass
class _Saving:
    """One backup under way."""

    directory: DataDirectory
    installation: Installation
    folder: Path
    before: Listing | None
    master_key: bytes = field(repr=False)
    written: int = 0
    linked: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        return 1 if self.before is None else self.before.number + 1

    def run(self) -> Summary:
        with self.installation.store.read() as view:
            keys, usages = keys_by_tenant(view), UsageRecord.all(view)
            accounts = [
                (tenant, keys.get(tenant.name, []), usages.get(tenant.account_id))
                for tenant in Tenant.all(view).values()
            ]
        own = {path: self._own_file(path) for path in OWN_FILES}
        tenants = tuple(saved for account in accounts if (saved := self._tenant(*account)))
        self.installation.stores.refuse_turn()
        pepper = self.installation.store.secret(KEY_PEPPER)
        listing = Listing(
            number=self.number,
            created_at=datetime.now(UTC).isoformat(),
            version=VERSION,
            master_key_check=master_key_check(self.master_key),
            sealed_pepper=seal_secret(self.master_key, KEY_PEPPER, pepper),
            installation={path: file for path, file in own.items() if file is not None},
            tenants=tenants,
        )
        for name in ("planes", _OWN):
            sync_folder(self.folder / name)
        self.written += listing.write(self.folder)
        return Summary(listing, self.written, self.linked, self.failed)

    def _tenant(
        self, tenant: Tenant, keys: list[ApiKey], usage: UsageRecord | None
    ) -> SavedTenant | None:
        """Saves a tenant. Returns the previous backup's tenant if the plane cannot be saved."""
        known = self._known(tenant)
        try:
            plane = self._plane(tenant, known)
        except StoreFull:
            raise
        except StoreError as error:
            with self.installation.store.read() as view:
                now = Tenant.get(view, tenant.name)
            if now is None or now.account_id != tenant.account_id:
                return None  # deleted in the meantime
            self.failed[tenant.name] = str(error)
            return known
        return SavedTenant(tenant, tuple(keys), usage, plane)

    def _known(self, tenant: Tenant) -> SavedTenant | None:
        saved = () if self.before is None else self.before.tenants
        return next((one for one in saved if one.record.account_id == tenant.account_id), None)

    def _plane(self, tenant: Tenant, known: SavedTenant | None) -> SavedPlane:
        folder = self.folder / "planes" / tenant.account_id
        files = () if known is None else known.plane.files
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            done = self.installation.engine.save_plane(
                tenant.account_id, folder, self.number, files
            )
            if done is not None:
                self.written += done.bytes_written
                self.linked += done.bytes_linked
                return done.plane
            if time.monotonic() >= until:
                message = f"the compaction of {tenant.name} does not end"
                raise OperatorError(message)
            time.sleep(_RETRY_SECONDS)

    def _own_file(self, path: str) -> SavedFile | None:
        """Saves a file of the installation, unless the previous backup has the same content."""
        try:
            content = (self.directory.root / path).read_bytes()
        except FileNotFoundError:
            return None
        digest = hashlib.sha256(content).digest()
        known = None if self.before is None else self.before.installation.get(path)
        if known is not None and known.sha256 == digest:
            return known
        name = f"{_OWN}/{self.number}/{path}"
        new = self.folder / name
        new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        write_private(new, content)
        for folder in (new.parent, new.parent.parent):
            sync_folder(folder)
        self.written += len(content)
        return SavedFile(name, len(content), digest)


def _prepare(directory: DataDirectory, folder: Path) -> None:
    """Makes the folder. Raises `OSError`, and `OperatorError` if the folder has another use."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    here, data = folder.resolve(), directory.root.resolve()
    if here.is_relative_to(data) or data.is_relative_to(here):
        message = f"{folder} and the data directory {data} must lie outside of each other"
        raise OperatorError(message)
    names = {path.name for path in folder.iterdir()} - {"lost+found"}
    if names and not names & {LOCK_FILE, LISTING_FILE}:
        message = f"{folder} is not empty and holds no backup"
        raise OperatorError(message)
    for name in ("planes", _OWN):
        (folder / name).mkdir(mode=0o700, exist_ok=True)


def _remove_unlisted(folder: Path) -> None:
    """Removes files that the list does not name, and then empty folders."""
    listed: set[str] = set()
    if (folder / LISTING_FILE).exists():
        listing = Listing.read(folder)
        listed.update(file.name for file in listing.installation.values())
        for tenant in listing.tenants:
            listed.update(f"{tenant.folder}/{file.name}" for file in tenant.plane.files)
    for top in (folder / "planes", folder / _OWN):
        for path in sorted(top.rglob("*"), reverse=True):  # files before their folder
            if path.is_dir():
                with suppress(OSError):  # not empty
                    path.rmdir()
            elif str(path.relative_to(folder)) not in listed:
                path.unlink()
