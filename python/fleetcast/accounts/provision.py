"""Makes tenants and keys as a file declares them. A second run changes nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError
from fleetcast.security.master_key import sync_folder, write_private

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.accounts.declaration import DeclaredKey, DeclaredTenant
    from fleetcast.accounts.keys import Keys
    from fleetcast.accounts.tenants import Tenants
    from fleetcast.engine import ApiKey, Tenant


@dataclass
class Provisioned:
    """Result of a declaration: a row for each tenant and each key, and warnings to look at."""

    tenants: list[dict[str, object]] = field(default_factory=list)
    keys: list[dict[str, object]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Provisioner:
    """Applies declarations to a data directory; keys are issued for `environment`."""

    def __init__(self, tenants: Tenants, keys: Keys, environment: str) -> None:
        self._tenants = tenants
        self._keys = keys
        self._environment = environment

    def apply(self, declared: Sequence[DeclaredTenant]) -> Provisioned:
        """Makes missing tenants and keys, and changes them if they differ from their declaration.

        Tenants and keys that are not declared stay. Raises `OperatorError`, `StoreError`,
        `ControlStoreUnavailable`, `OSError`.
        """
        result = Provisioned()
        existing = {tenant.name: tenant for tenant in self._tenants.all()}
        for each in declared:
            tenant, action = self._tenant(each, existing.get(each.name))
            result.tenants.append(
                {"tenant": tenant.name, "account_id": tenant.account_id, "action": action}
            )
            # If several keys have a name, the newest key counts. A rotated key ends when its
            # overlap ends.
            issued = {
                key.name: key for key in self._keys.all(tenant.name) if key.replaced_by is None
            }
            for key in each.keys:
                self._key(tenant, key, issued.get(key.name), result)
        return result

    def _tenant(self, declared: DeclaredTenant, existing: Tenant | None) -> tuple[Tenant, str]:
        if existing is None:
            return self._tenants.create(declared.name, **declared.attributes), "created"
        if all(getattr(existing, name) == value for name, value in declared.attributes.items()):
            return existing, "unchanged"
        return self._tenants.change(declared.name, **declared.attributes), "changed"

    def _key(
        self, tenant: Tenant, declared: DeclaredKey, existing: ApiKey | None, result: Provisioned
    ) -> None:
        row: dict[str, object] = {"tenant": tenant.name, "name": declared.name}
        result.keys.append(row)
        if existing is None:
            row |= self._issue(tenant, declared)
            return
        row |= {"key_id": existing.key_id, "action": "unchanged"}
        ended = existing.ended(self._keys.now())
        if ended:
            result.warnings.append(f"key {declared.name} of {tenant.name} is {ended}")
        elif declared.differs(existing):
            lifetime = declared.lifetime_seconds
            if lifetime is None and existing.expires_at is not None:
                lifetime = existing.expires_at - existing.created_at
            self._keys.change(existing.key_id, scopes=declared.scopes, lifetime_seconds=lifetime)
            row["action"] = "changed"
        if declared.key_file is not None and not declared.key_file.exists():
            result.warnings.append(
                f"key {declared.name} of {tenant.name} is kept, but {declared.key_file} is gone:"
                f" rotate key {existing.key_id} if its text is lost"
            )

    def _issue(self, tenant: Tenant, declared: DeclaredKey) -> dict[str, object]:
        issued = self._keys.prepare(
            tenant.name,
            scopes=declared.scopes,
            environment=self._environment,
            name=declared.name,
            lifetime_seconds=declared.lifetime_seconds,
        )
        row: dict[str, object] = {"key_id": issued.record.key_id, "action": "created"}
        if declared.key_file is None:
            self._keys.add(issued)
            return row | {"key": str(issued.text)}
        # The text is on disk before the key is valid. After a crash it could not be read anywhere
        # else.
        file = declared.key_file
        if file.exists():
            message = f"{file} exists, but {tenant.name} has no key {declared.name}: move it away"
            raise OperatorError(message)
        draft = file.with_name(f".{file.name}.{issued.record.key_id}")
        write_private(draft, f"{issued.text}\n".encode())
        try:
            self._keys.add(issued)
            draft.replace(file)
            sync_folder(file.parent)
        finally:
            draft.unlink(missing_ok=True)
        return row | {"key_file": str(file)}
