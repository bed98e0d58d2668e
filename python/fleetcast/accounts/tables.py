"""The records of the control store as one transaction sees them."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, TypeVar

from fleetcast.accounts.records import ApiKey, ConsoleSession, OperatorToken, Tenant, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.engine import RecordsTransaction

TENANTS, KEYS, USAGE, OPERATORS, SESSIONS = SPACES = (
    *("tenants", "keys", "usage", "operators", "sessions"),
)
COUNTED = (TENANTS, KEYS, OPERATORS)
"""Spaces that decide who is let in: an older copy of them is noticed."""

Record = TypeVar("Record", Tenant, ApiKey, OperatorToken, ConsoleSession, UsageRecord)


class ControlStoreUnavailable(Exception):
    """The control store cannot be read or written now; the message says why."""


class Tables:
    """The records as one transaction sees them."""

    __slots__ = ("_view",)

    def __init__(self, view: RecordsTransaction) -> None:
        self._view = view

    def tenant(self, name: str) -> Tenant | None:
        """The tenant of a name."""
        data = self._view.get(TENANTS, name.encode())
        return None if data is None else _decoded(Tenant, data)

    def tenants(self) -> list[Tenant]:
        """All tenants by name."""
        return list(self.decoded_tenants({}).values())

    def decoded_tenants(self, known: Mapping[bytes, Tenant]) -> dict[bytes, Tenant]:
        """All tenants by name, under the bytes of their records; `known` ones are not decoded."""
        stored = (data for _, data in self._view.under(TENANTS, b""))
        return {data: known.get(data) or decode(Tenant, data) for data in stored}

    def put_tenant(self, tenant: Tenant) -> None:
        """Adds or replaces a tenant."""
        self._view.put(TENANTS, tenant.name.encode(), tenant.encode())

    def delete_tenant(self, name: str) -> None:
        """Deletes a tenant's record."""
        self._view.delete(TENANTS, name.encode())

    def key(self, key_id: str) -> ApiKey | None:
        """The key of an id."""
        data = self._view.get(KEYS, key_id.encode())
        return None if data is None else _decoded(ApiKey, data)

    def keys_of(self, tenant: str) -> list[ApiKey]:
        """A tenant's keys, oldest first."""
        name = json.dumps(tenant).encode()  # as written in records: few of many are decoded
        held = [data for _, data in self._view.under(KEYS, b"") if name in data]
        mine = [key for data in held if (key := _decoded(ApiKey, data)).tenant == tenant]
        return sorted(mine, key=lambda key: (key.created_at, key.key_id))

    def put_key(self, key: ApiKey) -> None:
        """Adds or replaces a key."""
        self._view.put(KEYS, key.key_id.encode(), key.encode())

    def delete_key(self, key_id: str) -> None:
        """Deletes a key's record."""
        self._view.delete(KEYS, key_id.encode())

    def operator(self, token_id: str) -> OperatorToken | None:
        """The operator token of an id."""
        data = self._view.get(OPERATORS, token_id.encode())
        return None if data is None else _decoded(OperatorToken, data)

    def operators(self) -> list[OperatorToken]:
        """All operator tokens."""
        return [_decoded(OperatorToken, data) for _, data in self._view.under(OPERATORS, b"")]

    def put_operator(self, token: OperatorToken) -> None:
        """Adds or replaces an operator token."""
        self._view.put(OPERATORS, token.token_id.encode(), token.encode())

    def session(self, session_id: str) -> ConsoleSession | None:
        """The console session of an id."""
        data = self._view.get(SESSIONS, session_id.encode())
        return None if data is None else _decoded(ConsoleSession, data)

    def sessions(self) -> list[ConsoleSession]:
        """All console sessions."""
        return [_decoded(ConsoleSession, data) for _, data in self._view.under(SESSIONS, b"")]

    def put_session(self, session: ConsoleSession) -> None:
        """Adds or replaces a console session."""
        self._view.put(SESSIONS, session.session_id.encode(), session.encode())

    def delete_session(self, session_id: str) -> None:
        """Deletes a console session's record."""
        self._view.delete(SESSIONS, session_id.encode())

    def usage(self, key: str) -> UsageRecord | None:
        """The usage of an account, or of an account on a node."""
        data = self._view.get(USAGE, key.encode())
        return None if data is None else _decoded(UsageRecord, data)

    def usages(self, account_id: str) -> dict[str, UsageRecord]:
        """The usage of an account on all nodes, by key."""
        found = self._view.under(USAGE, account_id.encode())
        return {key.decode(): _decoded(UsageRecord, data) for key, data in found}

    def put_usage(self, key: str, record: UsageRecord) -> None:
        """Adds or replaces an account's usage, or that on a node."""
        self._view.put(USAGE, key.encode(), record.encode())

    def delete_usage(self, account_id: str) -> None:
        """Deletes an account's usage, on all nodes."""
        for key in self.usages(account_id):
            self._view.delete(USAGE, key.encode())


@functools.lru_cache(maxsize=4_096)
def _decoded(kind: type[Record], data: bytes) -> Record:
    # Records are immutable, so equal bytes may share one: most requests come with a known key.
    return decode(kind, data)


def decode(kind: type[Record], data: bytes) -> Record:
    """The record of stored bytes. Raises `ControlStoreUnavailable` for other bytes."""
    try:
        return kind.decode(data)
    except (ValueError, TypeError, KeyError) as error:
        message = f"the control store holds a damaged {kind.__name__} record"
        raise ControlStoreUnavailable(message) from error
