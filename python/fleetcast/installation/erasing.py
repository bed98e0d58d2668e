"""Deletion of a tenant with a signed receipt, which says what was destroyed where and when."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fleetcast.accounts import RECEIPT_KEY, ControlStoreUnavailable
from fleetcast.forecast.serving.store import PredictionStoreUnavailable
from fleetcast.log_lines import timestamp
from fleetcast.security.master_key import key_id
from fleetcast.security.receipts import signed

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.opening import Installation

_KEY = "data key"
_ROWS = "rows"
_FORECASTS = "forecasts"
_CONTENTS = {
    "key": _KEY,
    "plane.mdb": "names, counts and the list of segments",
    "log": "newest rows",
    "segments": _ROWS,
}
"""Contents of the parts of a plane's folder. The other parts have locks."""


@dataclass(frozen=True)
class DestroyedPart:
    """A part of a tenant's data, and its files before they were removed."""

    what: str
    where: str
    files: int = 0
    bytes: int = 0
    linked_files: int = 0
    """Files that have another name on this disk, in a backup."""
    is_gone: bool = True
    """False if the part is still there. Without the data key it cannot be read."""


def erase(directory: DataDirectory, installation: Installation, name: str) -> dict[str, Any]:
    """Deletes a tenant. Returns the signed receipt, which the audit log has as well.

    After a crash, delete the tenant again: the receipt then has no `key_destroyed_at` if the key
    was destroyed before. Raises `OperatorError`, `StoreError`, `ControlStoreUnavailable`.
    """
    with installation.tenants.deleting(name) as tenant:
        begun_at, secret = timestamp(), installation.store.secret(RECEIPT_KEY)
        parts = partial(_parts, directory, installation, tenant.account_id)
        before = parts()
        had_key = any(part.what == _KEY for part in before)
        installation.engine.destroy_plane(tenant.account_id)
        destroyed_at = timestamp()
        kept = {_ROWS} if installation.stores.is_shared else {part.where for part in parts()}
        destroyed = [replace(part, is_gone=not kept & {part.what, part.where}) for part in before]
        forecasts = _forget(installation, tenant.account_id)
        receipt = {
            "tenant": tenant.name,
            "account_id": tenant.account_id,
            "master_key": key_id(installation.master_key),
            "begun_at": begun_at,
            "key_destroyed_at": destroyed_at if had_key else None,
            "destroyed": [asdict(part) for part in (*destroyed, forecasts)],
            "ended_at": timestamp(),
        }
        document = signed(secret, receipt)
        names = {"tenant": tenant.name, "account_id": tenant.account_id}
        installation.stores.audit()("tenant data destroyed", **names, **document)
    return document


def _parts(
    directory: DataDirectory, installation: Installation, account_id: str
) -> list[DestroyedPart]:
    """Returns the parts of a plane that exist now.

    A database does not say if they exist, and objects are removed later.
    """
    if installation.stores.is_shared:
        return [DestroyedPart(_KEY, "database"), DestroyedPart(_ROWS, "database, object store")]
    folder = directory.planes / account_id
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [_part(directory.root, path) for path in found]


def _part(root: Path, path: Path) -> DestroyedPart:
    found = []
    for each in path.rglob("*") if path.is_dir() else [path]:
        with suppress(FileNotFoundError):  # a compaction in progress may remove it
            found.append(each.lstat())
    return DestroyedPart(
        what=_CONTENTS.get(path.name, "other"),
        where=str(path.relative_to(root)),
        files=len(found),
        bytes=sum(each.st_size for each in found),
        linked_files=sum(each.st_nlink > 1 for each in found),
    )


def _forget(installation: Installation, account_id: str) -> DestroyedPart:
    """Deletes forecasts and usage. If that fails they stay, sealed under the destroyed key."""
    where = "database" if installation.stores.is_shared else "forecast"
    try:
        installation.stores.forget(account_id)
    except (ControlStoreUnavailable, PredictionStoreUnavailable):
        return DestroyedPart(_FORECASTS, where, is_gone=False)
    return DestroyedPart(_FORECASTS, where)
