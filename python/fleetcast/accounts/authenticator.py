"""Identity behind a request: one read of the control store each time, nothing cached.

A refusal rests on the newest state: where changes of other nodes may not be known yet, it is
decided once more.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts.key_text import read_key_text
from fleetcast.accounts.secret_hash import SecretHasher
from fleetcast.errors import Refused, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts.key_text import KeyText
    from fleetcast.accounts.records import ApiKey, Tenant
    from fleetcast.accounts.store import ControlStore
    from fleetcast.accounts.tables import Tables


class Identity(NamedTuple):
    """The tenant and the rights of a request."""

    account_id: str
    tenant_key: str
    key_id: str
    environment: str
    scopes: frozenset[str]
    plan: str
    live_ingest: bool
    status: str
    retention_seconds: int | None = None
    created_at: int | None = None
    key_expires_at: int | None = None
    control_transaction: int | None = None
    """Number of the last change of the control store before it was read."""


class InvalidKey(Refused):
    """`auth_failed` for a key that was sent and is no good: the kind the lockout counts."""

    def __init__(self) -> None:
        super().__init__("auth_failed", {})


class Authenticator:
    """Checks keys for one environment. Safe to share between threads."""

    def __init__(
        self,
        store: ControlStore,
        pepper: bytes,
        environment: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._hasher = SecretHasher(pepper)
        self._environment = environment
        self._clock = clock

    def authenticate(self, key_text: str | None) -> Identity:
        """The identity behind the text of a key, `None` where none was sent.

        Raises `InvalidKey`, `Refused` (`auth_failed` for no key, `tenant_unknown`,
        `tenant_disabled`), `ControlStoreUnavailable`.
        """
        if key_text is None:
            raise refused("auth_failed")
        text = read_key_text(key_text)
        if text is None:
            raise InvalidKey
        try:
            return self._identity(text)
        except Refused:
            if not self._store.renew():
                raise
        return self._identity(text)

    def _identity(self, text: KeyText) -> Identity:
        """The identity behind a key, as far as changes of the store are known here."""
        found = self._store.ask(partial(_key_and_tenant, text.key_id))
        key, tenant, control_transaction = found
        is_genuine = self._hasher.proves(text.secret, None if key is None else key.hash)
        if key is None or not is_genuine or key.ended(self._clock()):
            raise InvalidKey
        if key.environment != self._environment or text.environment != self._environment:
            raise InvalidKey
        if tenant is None:
            raise refused("tenant_unknown")
        if tenant.disabled:
            raise refused("tenant_disabled")
        return Identity(
            account_id=tenant.account_id,
            tenant_key=tenant.name,
            key_id=key.key_id,
            environment=key.environment,
            scopes=frozenset(key.scopes),
            plan=tenant.plan,
            live_ingest=tenant.live_ingest,
            status=tenant.status,
            retention_seconds=tenant.retention_seconds,
            created_at=tenant.created_at,
            key_expires_at=key.expires_at,
            control_transaction=control_transaction,
        )


def _key_and_tenant(key_id: str, tables: Tables) -> tuple[ApiKey | None, Tenant | None, int]:
    key = tables.key(key_id)
    tenant = None if key is None else tables.tenant(key.tenant)
    return key, tenant, tables.transaction_id
