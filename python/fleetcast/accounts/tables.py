"""The records of the control store as one transaction sees them."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, TypeVar

from fleetcast.accounts.records import ApiKey, Tenant, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lmdb

Record = TypeVar("Record", Tenant, ApiKey, UsageRecord)


class ControlStoreUnavailable(Exception):
    """The control store cannot be read or written now; the message says why."""


class Tables:
    """The records as one transaction sees them."""

    def __init__(
        self,
        transaction: lmdb.Transaction,
        tenants: lmdb._Database,
        keys: lmdb._Database,
        usage: lmdb._Database,
    ) -> None:
        self._transaction = transaction
        self._tenants = tenants
        self._keys = keys
        self._usage = usage

    @property
    def transaction_id(self) -> int:
        """Number of the last change that is seen here; every change has a higher one."""
        return self._transaction.id()

    def own(self, key: bytes) -> bytes:
        """A value of the environment's own table, empty where there is none."""
        return bytes(self._transaction.get(key) or b"")

    def tenant(self, name: str) -> Tenant | None:
        """The tenant of a name."""
        data = self._transaction.get(name.encode(), db=self._tenants)
        return None if data is None else _decoded(Tenant, bytes(data))

    def tenants(self) -> list[Tenant]:
        """All tenants by name."""
        return list(self.decoded_tenants({}).values())

    def decoded_tenants(self, known: Mapping[bytes, Tenant]) -> dict[bytes, Tenant]:
        """All tenants by name, under the bytes of their records; `known` ones are not decoded."""
        found = {}
        for _, data in self._transaction.cursor(self._tenants):
            stored = bytes(data)
            found[stored] = known.get(stored) or _decode(Tenant, stored)
        return found

    def put_tenant(self, tenant: Tenant) -> None:
        """Adds or replaces a tenant."""
        self._transaction.put(tenant.name.encode(), tenant.encode(), db=self._tenants)

    def delete_tenant(self, name: str) -> None:
        """Deletes a tenant's record."""
        self._transaction.delete(name.encode(), db=self._tenants)

    def key(self, key_id: str) -> ApiKey | None:
        """The key of an id."""
        data = self._transaction.get(key_id.encode(), db=self._keys)
        return None if data is None else _decoded(ApiKey, bytes(data))

    def keys_of(self, tenant: str) -> list[ApiKey]:
        """A tenant's keys, oldest first."""
        name = json.dumps(tenant).encode()  # as written in records: few of many are decoded
        held = [bytes(data) for _, data in self._transaction.cursor(self._keys) if name in data]
        mine = [key for data in held if (key := _decoded(ApiKey, data)).tenant == tenant]
        return sorted(mine, key=lambda key: (key.created_at, key.key_id))

    def put_key(self, key: ApiKey) -> None:
        """Adds or replaces a key."""
        self._transaction.put(key.key_id.encode(), key.encode(), db=self._keys)

    def delete_key(self, key_id: str) -> None:
        """Deletes a key's record."""
        self._transaction.delete(key_id.encode(), db=self._keys)

    def usage(self, account_id: str) -> UsageRecord | None:
        """The usage of an account."""
        data = self._transaction.get(account_id.encode(), db=self._usage)
        return None if data is None else _decoded(UsageRecord, bytes(data))

    def put_usage(self, account_id: str, record: UsageRecord) -> None:
        """Adds or replaces an account's usage."""
        self._transaction.put(account_id.encode(), record.encode(), db=self._usage)

    def delete_usage(self, account_id: str) -> None:
        """Deletes an account's usage."""
        self._transaction.delete(account_id.encode(), db=self._usage)


@functools.lru_cache(maxsize=4_096)
def _decoded(kind: type[Record], data: bytes) -> Record:
    # Records are immutable, so equal bytes may share one: most requests come with a known key.
    return _decode(kind, data)


def _decode(kind: type[Record], data: bytes) -> Record:
    try:
        return kind.decode(data)
    except (ValueError, TypeError, KeyError) as error:
        message = f"the control store holds a damaged {kind.__name__} record"
        raise ControlStoreUnavailable(message) from error
