"""Restores of a backup: a whole installation into an empty directory, or one tenant into another.

A restore that broke off leaves its lock file. Until the restore is run again, no command takes the
directory or the plane for whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.accounts import KEY_PEPPER, ControlStore
from fleetcast.backup.checking import answers_of
from fleetcast.backup.listing import Listing
from fleetcast.config import SETTINGS_FILE, resolve
from fleetcast.config.sections import EMBEDDED
from fleetcast.engine import Engine, open_secret
from fleetcast.errors import OperatorError, StoreDamaged
from fleetcast.installation.audit_log import record
from fleetcast.installation.lock import held
from fleetcast.installation.opening import opened
from fleetcast.installation.turning import settled
from fleetcast.security.certificate import issue_certificate
from fleetcast.security.master_key import (
    create_master_key,
    key_line,
    load_master_key,
    sync_folder,
    sync_readable,
    write_private,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from fleetcast.backup.listing import SavedTenant
    from fleetcast.config import Settings
    from fleetcast.engine import SavedFile
    from fleetcast.installation.directory import DataDirectory


@dataclass(frozen=True)
class Restored:
    """A tenant that was restored and compared; `name` is its new name.

    `answers` is the hash over all answers.
    """

    name: str
    saved: SavedTenant
    rows: int
    values: int
    answers: int
    keys: int


@dataclass(frozen=True)
class RestoreKeys:
    """Sources of master keys. `saved` is the backup's key; `None` means the installation's key.

    If the installation has no key, it gets a new key if `renewed` is true, else the backup's key.
    """

    saved: bytes | None = None
    renewed: bool = False


def restore_all(
    directory: DataDirectory, environ: Mapping[str, str], folder: Path, keys: RestoreKeys
) -> Iterator[Restored]:
    """Fills an empty data directory, or a directory whose restore broke off.

    The directory may already have its master key. Raises `OperatorError`,
    `ControlStoreUnavailable`, `StoreError`, `OSError`: run the restore again then.
    """
    listing = Listing.read(folder)
    root = directory.root
    settings_file = listing.installation[SETTINGS_FILE]
    settings = _settings_of(folder, settings_file, environ)
    saved_key = keys.saved or load_master_key(root, settings.security)
    listing.check_master_key(saved_key)
    with _emptied(directory, settings):
        master_key = _own_key(root, settings, saved_key, renewed=keys.renewed)
        for path in listing.installation.keys() - {SETTINGS_FILE}:
            _copy(folder, listing.installation[path], root / path)
        issue_certificate(directory.tls, master_key)  # by the authority of the backup, if any
        directory.planes.mkdir(mode=0o700)
        revision = directory.accounts_revision(settings)
        store = ControlStore.create(directory.control, master_key, revision)
        engine = Engine(directory.planes, master_key)
        is_same = saved_key == master_key
        try:
            if is_same:
                _keep_pepper(store, listing, master_key)
            for saved in listing.tenants:
                account_id = saved.record.account_id
                engine.restore_plane(
                    account_id, folder / saved.folder, saved.plane, master_key=saved_key
                )
                # The secret of the hashes of keys is sealed under the master key of the backup.
                kept = saved.keys if is_same else ()
                with store.write() as view:
                    saved.record.put(view)
                    for key in kept:
                        key.put(view)
                    if saved.usage is not None:
                        saved.usage.put(view, account_id)
                found = _compared(engine, account_id, folder, saved, saved_key)
                yield Restored(saved.record.name, saved, *found, len(kept))
        finally:
            engine.close()
            store.close()
        # The settings come last, because a directory with settings counts as a data directory.
        _copy(folder, settings_file, root / SETTINGS_FILE)
        made = directory.control, directory.tls, directory.planes, root
        sync_readable(*made, *root.absolute().parents)
    record(directory.audit_log, "backup restored", backup=str(folder))


def _keep_pepper(store: ControlStore, listing: Listing, master_key: bytes) -> None:
    """Keeps the secret of the hashes of API keys, so that restored keys are valid."""
    if listing.sealed_pepper is not None:
        pepper = open_secret(master_key, KEY_PEPPER, listing.sealed_pepper)
        store.keep_secret(KEY_PEPPER, pepper)


def _settings_of(folder: Path, file: SavedFile, environ: Mapping[str, str]) -> Settings:
    """Reads the settings in a backup. Raises `OperatorError` if nodes share its stores."""
    settings = resolve((folder / file.name).parent, environ).settings
    if settings.store.backend != EMBEDDED:
        message = (
            f"{folder} is of an installation on PostgreSQL: make one with fleetcast init, and add"
            " its tenants with --tenant NAME"
        )
        raise OperatorError(message)
    return settings


def restore_tenant(
    directory: DataDirectory,
    environ: Mapping[str, str],
    folder: Path,
    names: tuple[str, str],
    saved_key: bytes | None,
) -> Restored:
    """Adds the tenant with the first of `names` in the backup, under the second name.

    The tenant gets a new account and no keys. Raises `OperatorError`, `ControlStoreUnavailable`,
    `StoreError`, `OSError`; the tenant is not added then.

    Example: `("acme", "acme-restored")` leaves a tenant `acme` of the installation as it is.
    """
    listing = Listing.read(folder)
    saved = listing.tenant(names[0])
    with settled(directory), opened(directory, environ) as installation:
        installation.stores.refuse_turn()
        own_key = load_master_key(directory.root, installation.settings.security)
        master_key = saved_key or own_key
        listing.check_master_key(master_key)
        known = {tenant.account_id for tenant in installation.tenants.all()}
        _remove_unfinished(directory, known)
        engine = installation.engine

        with _noted(directory, engine) as note:

            def restore(account_id: str) -> None:
                note(account_id)
                engine.restore_plane(
                    *(account_id, folder / saved.folder, saved.plane),
                    saved_as=saved.record.account_id,
                    master_key=master_key,
                )

            tenant = installation.tenants.adopt(saved.record, names[1], restore)
        found = _compared(engine, tenant.account_id, folder, saved, master_key)
        return Restored(tenant.name, saved, *found, 0)


def _compared(
    engine: Engine, account_id: str, folder: Path, saved: SavedTenant, saved_key: bytes
) -> tuple[int, int, int]:
    """Returns rows, values and the hash over answers of the restored plane.

    Raises `StoreDamaged` if they differ from the backup's.
    """
    name = saved.record.name
    stats = engine.plane(account_id, name).stats()
    found, wanted = (stats.stored_rows, stats.stored_values), (saved.plane.rows, saved.plane.values)
    if found != wanted:
        message = f"{name} has {found[0]} rows and {found[1]} values, not {wanted[0]}, {wanted[1]}"
        raise StoreDamaged(message)
    with ThreadPoolExecutor(1) as beside:
        future = beside.submit(answers_of, folder, saved, saved_key)
        answers = engine.answers_hash(account_id, name)
        if answers != future.result():
            message = f"{name} answers otherwise than the backup"
            raise StoreDamaged(message)
    return *found, answers


@contextmanager
def _emptied(directory: DataDirectory, settings: Settings) -> Iterator[None]:
    """Holds the lock of a restore into a directory that is empty but for its master key.

    Raises `OperatorError`.
    """
    root, mark = directory.root, directory.unfinished_restore
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    security = settings.security
    kept = {*("lost+found", mark.name, security.master_key_file, security.accounts_revision_file)}
    if not mark.exists() and {path.name for path in root.iterdir()} - kept:
        message = f"{root} is not empty: restore fills an empty one, or adds one --tenant"
        raise OperatorError(message)
    root.chmod(0o700)
    with held(mark, f"another restore into {root} is under way"):
        if not mark.stat().st_size:
            own = [path.name for path in root.iterdir() if path.name != mark.name]
            mark.write_text(json.dumps(own))
            with mark.open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(root)
        own = json.loads(mark.read_text())
        for path in root.iterdir():
            if path.name not in {*own, mark.name}:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield
        mark.unlink()
        sync_folder(root)


def _own_key(root: Path, settings: Settings, saved_key: bytes, *, renewed: bool) -> bytes:
    """Returns the installation's master key, which is made if it is missing.

    Raises `OperatorError`, `OSError`.
    """
    path = root / settings.security.master_key_file
    if settings.security.master_key_command or path.exists():
        return load_master_key(root, settings.security)
    if renewed:
        return create_master_key(path)
    write_private(path, key_line(saved_key))
    return saved_key


@contextmanager
def _noted(directory: DataDirectory, engine: Engine) -> Iterator[Callable[[str], None]]:
    """Gives a function that notes the account of a plane under restore.

    If the block raises, the noted planes are removed.
    """
    directory.restoring.mkdir(mode=0o700, exist_ok=True)
    with held(directory.restoring / "lock", "another restore of a tenant is under way"):
        noted: list[str] = []

        def note(account_id: str) -> None:
            (directory.restoring / account_id).touch(mode=0o600)
            sync_folder(directory.restoring)
            noted.append(account_id)

        try:
            yield note
        except BaseException:
            for account_id in noted:
                engine.destroy_plane(account_id)
            raise
        finally:
            for account_id in noted:
                (directory.restoring / account_id).unlink(missing_ok=True)


def _remove_unfinished(directory: DataDirectory, known: set[str]) -> None:
    """Removes planes of restores that broke off.

    Raises `OperatorError` if a restore is under way.
    """
    if not directory.restoring.is_dir():
        return
    with held(directory.restoring / "lock", "another restore of a tenant is under way"):
        for path in directory.restoring.iterdir():
            if path.name == "lock":
                continue
            if path.name not in known:
                with suppress(FileNotFoundError):
                    shutil.rmtree(directory.planes / path.name)
            path.unlink()


def _copy(folder: Path, file: SavedFile, path: Path) -> None:
    """Copies a file of the backup. Raises `OperatorError` if it is damaged, `OSError`."""
    content = (folder / file.name).read_bytes()
    if hashlib.sha256(content).digest() != file.sha256:
        message = f"{folder / file.name} is damaged"
        raise OperatorError(message)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(path, content)
