"""The list of all tenants, for callers that need it again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetcast.accounts.records import Tenant
    from fleetcast.accounts.store import ControlStore


class TenantList:
    """All tenants by name. Only records that have changed since the last look are decoded."""

    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self._decoded: dict[bytes, Tenant] = {}

    def read(self) -> list[Tenant]:
        """The tenants as they are now. Raises `ControlStoreUnavailable`."""
        with self._store.read() as tables:
            self._decoded = tables.decoded_tenants(self._decoded)
        return list(self._decoded.values())
