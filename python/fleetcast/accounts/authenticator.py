"""Identity behind a request: the engine reads the control store each time.

A refusal rests on the newest state: if changes of other nodes may not be known yet, it is decided
once more.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts.tables import ControlStoreUnavailable
from fleetcast.engine import Authenticator as EngineAuthenticator
from fleetcast.errors import RecordsUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts.store import ControlStore
    from fleetcast.engine import IdentityParts


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

    @staticmethod
    def of(parts: IdentityParts) -> Identity:
        """The identity that the engine has found."""
        names, scopes, (plan, live_ingest, is_disabled, retention_seconds, created_at) = parts
        status = "disabled" if is_disabled else "active"
        rights = frozenset(scopes), plan, live_ingest, status
        return Identity(*names, *rights, retention_seconds, created_at)


class Authenticator:
    """Checks keys for one environment. Safe to share between threads."""

    def __init__(
        self,
        store: ControlStore,
        pepper: bytes,
        environment: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.engine = EngineAuthenticator(store.records, pepper, environment)
        """Checks without the interpreter."""
        self._clock = clock

    def authenticate(self, key_text: str | None) -> Identity:
        """The identity behind the text of a key, `None` if none was sent.

        Raises `InvalidKey`, `Refused` (`auth_failed` for no key, `tenant_unknown`,
        `tenant_disabled`), `ControlStoreUnavailable`.
        """
        try:
            return Identity.of(self.engine.identify(key_text, now=int(self._clock())))
        except RecordsUnavailable as error:
            raise ControlStoreUnavailable(str(error)) from error
