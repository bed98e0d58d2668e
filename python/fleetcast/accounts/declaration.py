"""The file that `provision` takes: `[[tenant]]` tables with `[[tenant.key]]` tables below.

Example: a tenant with one key that may write.

    [[tenant]]
    name = "acme"

    [[tenant.key]]
    name = "gateway"
    scopes = ["telemetry:write"]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetcast.accounts.keys import checked_scopes
from fleetcast.accounts.tenants import PLAN_DEFAULT, check_attributes, check_name
from fleetcast.config.toml_file import read_toml
from fleetcast.durations import parse_duration
from fleetcast.errors import OperatorError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.engine import ApiKey

_TENANT_WORDS = {"name", "plan", "live_ingest", "retention", "key"}
_KEY_WORDS = {"name", "scopes", "expires", "key_file"}


@dataclass(frozen=True, kw_only=True)
class DeclaredKey:
    """A key that a provisioning file declares."""

    name: str
    scopes: list[str]
    lifetime_seconds: int | None
    key_file: Path | None

    def differs(self, key: ApiKey) -> bool:
        """Returns true if the issued key has other scopes or another end than the file declares."""
        if self.lifetime_seconds is None:
            return self.scopes != key.scopes
        return (self.scopes, key.created_at + self.lifetime_seconds) != (key.scopes, key.expires_at)


@dataclass(frozen=True, kw_only=True)
class DeclaredTenant:
    """A tenant that a provisioning file declares; `attributes` has only the declared attributes."""

    name: str
    attributes: dict[str, Any]
    keys: tuple[DeclaredKey, ...]


def read_declaration(path: Path) -> list[DeclaredTenant]:
    """Reads a provisioning file.

    Raises `OSError`, and `OperatorError` with all faults of the file.
    """
    return _Reader(path).read(read_toml(path))


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems: list[str] = []

    def read(self, document: dict[str, Any]) -> list[DeclaredTenant]:
        self._known(document, {"tenant"}, "the file")
        tenants = [self._tenant(table) for table in self._tables(document, "tenant", "the file")]
        self._distinct([tenant.name for tenant in tenants], "tenant")
        files = [key.key_file for tenant in tenants for key in tenant.keys if key.key_file]
        self._distinct([str(file) for file in files], "key_file")
        if self._problems:
            raise SettingsError([f"{self._path}: {problem}" for problem in self._problems])
        return tenants

    def _tenant(self, table: dict[str, Any]) -> DeclaredTenant:
        name = self._value(table, "name", str, "a tenant") or ""
        where = f"tenant {name}"
        self._known(table, _TENANT_WORDS, where)
        attributes = {
            "plan": self._value(table, "plan", str, where),
            "live_ingest": self._value(table, "live_ingest", bool, where),
            "retention_seconds": self._duration(table, "retention", where),
        }
        declared = {key: value for key, value in attributes.items() if value is not None}
        try:
            check_name(name)
            check_attributes(declared.get("plan", PLAN_DEFAULT), declared.get("retention_seconds"))
        except OperatorError as error:
            self._problems.append(str(error))
        keys = tuple(self._key(key, where) for key in self._tables(table, "key", where))
        self._distinct([key.name for key in keys], f"{where}: key")
        return DeclaredTenant(name=name, attributes=declared, keys=keys)

    def _key(self, table: dict[str, Any], tenant: str) -> DeclaredKey:
        name = self._value(table, "name", str, f"a key of {tenant}") or ""
        where = f"{tenant}, key {name}"
        self._known(table, _KEY_WORDS, where)
        if not name:
            self._problems.append(f"{tenant}: a key needs a name")
        file = self._value(table, "key_file", str, where)
        scopes: list[str] = []
        try:
            scopes = checked_scopes(self._texts(table.get("scopes", [])))
        except OperatorError as error:
            self._problems.append(f"{where}: {error}")
        return DeclaredKey(
            name=name,
            scopes=scopes,
            lifetime_seconds=self._duration(table, "expires", where),
            key_file=(self._path.absolute().parent / file) if file else None,
        )

    def _tables(self, table: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
        found = table.get(name, [])
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return found
        self._problems.append(f"{where}: {name} must be written as [[…{name}]] tables")
        return []

    def _texts(self, value: object) -> list[str]:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        message = "scopes must be a list of strings"
        raise OperatorError(message)

    def _value(self, table: dict[str, Any], name: str, kind: type, where: str) -> Any:  # noqa: ANN401 - of `kind`
        value = table.get(name)
        if value is None or isinstance(value, kind):
            return value
        wanted = "true or false" if kind is bool else "a string"
        self._problems.append(f"{where}: {name} must be {wanted}")
        return None

    def _duration(self, table: dict[str, Any], name: str, where: str) -> int | None:
        text = self._value(table, name, str, where)
        if text is None:
            return None
        try:
            return parse_duration(text)
        except ValueError as error:
            self._problems.append(f"{where}: {name}: {error}")
            return None

    def _known(self, table: dict[str, Any], words: set[str], where: str) -> None:
        unknown = sorted(set(table) - words)
        self._problems.extend(f"{where}: {word} is unknown" for word in unknown)

    def _distinct(self, names: list[str], kind: str) -> None:
        repeated = sorted({name for name in names if names.count(name) > 1})
        self._problems.extend(f"{kind} {name} is declared twice" for name in repeated)
