"""The list of a backup, `backup.json`: its files with their hashes, its tenants and their keys.

The list is written last and replaced at once, so a backup is there whole or not at all. A file that
the list does not name is not part of the backup (`docs/format.md`, "Backup").
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetcast.engine import ApiKey, SavedFile, SavedPlane, Tenant, UsageRecord
from fleetcast.errors import OperatorError
from fleetcast.security.master_key import (
    KEY_ID_CHARACTERS,
    master_key_check,
    sync_folder,
    write_private,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = 3
_FORMATS = (2, FORMAT)
"""Formats that can be read. Lists of format 2 have no `key_pepper`."""
LISTING_FILE = "backup.json"
_NEW_FILE = "backup.json.new"
_HEAD, _MIDDLE, _TAIL = b'{"backup":', b',"sha256":"', b'"}\n'


@dataclass(frozen=True)
class SavedTenant:
    """A tenant as it was saved: its records in the control store, and its plane."""

    record: Tenant
    keys: tuple[ApiKey, ...]
    usage: UsageRecord | None
    plane: SavedPlane

    @property
    def folder(self) -> str:
        """Path of the tenant's plane in the backup."""
        return f"planes/{self.record.account_id}"


@dataclass(frozen=True)
class Listing:
    """Content of a backup. `number` counts the backups that were made into its folder.

    `installation` has the files that belong to no tenant, by their paths in the data directory.
    """

    number: int
    created_at: str
    version: str
    master_key_check: str
    sealed_pepper: bytes | None
    """Secret of the hashes of API keys, sealed under the master key.

    If it is `None`, the secret is derived from the master key.
    """
    installation: Mapping[str, SavedFile]
    tenants: tuple[SavedTenant, ...]

    @property
    def master_key_id(self) -> str:
        """Name of the master key that the backup needs."""
        return self.master_key_check[:KEY_ID_CHARACTERS]

    def tenant(self, name: str) -> SavedTenant:
        """Returns the tenant of a name. Raises `OperatorError`."""
        for tenant in self.tenants:
            if tenant.record.name == name:
                return tenant
        message = f"there is no tenant {name} in the backup"
        raise OperatorError(message)

    def chosen(self, name: str | None) -> tuple[SavedTenant, ...]:
        """Returns the tenant of a name, or all tenants. Raises `OperatorError`."""
        return self.tenants if name is None else (self.tenant(name),)

    def check_master_key(self, master_key: bytes) -> None:
        """Raises `OperatorError` if the backup was made with another master key."""
        if not hmac.compare_digest(self.master_key_check, master_key_check(master_key)):
            message = (
                f"the backup was made with another master key, {self.master_key_id}: name the file"
                " of that key with --master-key"
            )
            raise OperatorError(message)

    def encode(self) -> bytes:
        """Returns the bytes of the list."""
        document = {
            "format": FORMAT,
            "number": self.number,
            "created_at": self.created_at,
            "fleetcast": self.version,
            "master_key_check": self.master_key_check,
            "key_pepper": self.sealed_pepper and self.sealed_pepper.hex(),
            "installation": {path: _encode_file(file) for path, file in self.installation.items()},
            "tenants": [_encode_tenant(tenant) for tenant in self.tenants],
        }
        body = json.dumps(document, separators=(",", ":")).encode()
        digest = hashlib.sha256(body).hexdigest().encode()
        return b"".join((_HEAD, body, _MIDDLE, digest, _TAIL))

    def write(self, folder: Path) -> int:
        """Replaces the list in `folder`, durably, and returns its length. Raises `OSError`."""
        content = self.encode()
        new = folder / _NEW_FILE
        new.unlink(missing_ok=True)
        write_private(new, content)
        os.replace(new, folder / LISTING_FILE)  # noqa: PTH105 - as durable as possible
        sync_folder(folder)
        return len(content)

    @staticmethod
    def read(folder: Path) -> Listing:
        """Reads the list of the backup in `folder`.

        Raises `OperatorError` if there is no usable list.
        """
        path = folder / LISTING_FILE
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            message = f"there is no backup in {folder}, or the first one did not end"
            raise OperatorError(message) from None
        document = _checked(content)
        if document is None:
            message = f"{path} is damaged"
            raise OperatorError(message)
        if document.get("format") not in _FORMATS:
            message = (
                f"{path} is of format {document.get('format')}, which this version cannot read"
            )
            raise OperatorError(message)
        return _decode(document)


def _checked(content: bytes) -> dict[str, Any] | None:
    """Returns the document; `None` if a bit of it has changed since it was written."""
    length = len(_MIDDLE) + 64 + len(_TAIL)
    body, end = content[len(_HEAD) : -length], content[-length:]
    digest = hashlib.sha256(body).hexdigest().encode()
    if not content.startswith(_HEAD) or end != b"".join((_MIDDLE, digest, _TAIL)):
        return None
    document: dict[str, Any] = json.loads(body)
    return document


def _encode_file(file: SavedFile) -> list[object]:
    name, length, sha256 = file
    return [name, length, sha256.hex()]


def _decode_file(values: list[Any]) -> SavedFile:
    name, length, sha256 = values
    return SavedFile(name, length, bytes.fromhex(sha256))


def _encode_tenant(tenant: SavedTenant) -> dict[str, object]:
    plane = tenant.plane
    return {
        "tenant": json.loads(tenant.record.encode()),
        "keys": [json.loads(key.encode()) for key in tenant.keys],
        "usage": tenant.usage and json.loads(tenant.usage.encode()),
        "rows": plane.rows,
        "values": plane.values,
        "content": plane.content.hex(),
        "files": [_encode_file(file) for file in plane.files],
    }


def _decode_tenant(values: dict[str, Any]) -> SavedTenant:
    return SavedTenant(
        record=Tenant(**values["tenant"]),
        keys=tuple(ApiKey(**key) for key in values["keys"]),
        usage=values["usage"] and UsageRecord(**values["usage"]),
        plane=SavedPlane(
            files=tuple(_decode_file(file) for file in values["files"]),
            rows=values["rows"],
            values=values["values"],
            content=bytes.fromhex(values["content"]),
        ),
    )


def _decode(document: dict[str, Any]) -> Listing:
    files, pepper = document["installation"].items(), document.get("key_pepper")
    return Listing(
        number=document["number"],
        created_at=document["created_at"],
        version=document["fleetcast"],
        master_key_check=document["master_key_check"],
        sealed_pepper=pepper and bytes.fromhex(pepper),
        installation={path: _decode_file(file) for path, file in files},
        tenants=tuple(_decode_tenant(tenant) for tenant in document["tenants"]),
    )
