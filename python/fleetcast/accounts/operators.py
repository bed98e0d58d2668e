"""Operator tokens: who may look at the console, and until when."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts.records import OperatorToken
from fleetcast.accounts.secret_hash import SecretHasher
from fleetcast.accounts.tenants import unaudited
from fleetcast.accounts.token_text import TokenText, new_token_text, read_token_text
from fleetcast.errors import OperatorError
from fleetcast.security.master_key import derive

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts.store import ControlStore
    from fleetcast.accounts.tenants import Audit

TOKEN_SECONDS = 30 * 86_400
"""Lifetime of a token for which nobody asks for another one."""
_PEPPER_LABEL = "fleetcast operator token pepper 1"
_NAME_CHARACTERS_MAX = 100


class IssuedToken(NamedTuple):
    """A new token: its record, and its text, which exists nowhere else."""

    record: OperatorToken
    text: TokenText


class Operators:
    """The operator tokens of one installation. `clock` gives seconds since 1970."""

    def __init__(
        self,
        store: ControlStore,
        master_key: bytes,
        clock: Callable[[], float] = time.time,
        audit: Audit = unaudited,
    ) -> None:
        self._store = store
        self._hasher = SecretHasher(derive(master_key, _PEPPER_LABEL))
        self._clock = clock
        self._audit = audit

    def create(self, *, name: str = "", lifetime_seconds: int = TOKEN_SECONDS) -> IssuedToken:
        """Issues a token. Raises `OperatorError`, `ControlStoreUnavailable`."""
        if len(name) > _NAME_CHARACTERS_MAX or not name.isprintable():
            message = f"the name must be at most {_NAME_CHARACTERS_MAX} printable characters"
            raise OperatorError(message)
        if lifetime_seconds < 1:
            message = "a token lives for 1s at least"
            raise OperatorError(message)
        text = new_token_text()
        now = int(self._clock())
        record = OperatorToken(
            token_id=text.token_id,
            name=name,
            created_at=now,
            expires_at=now + lifetime_seconds,
            revoked_at=None,
            hash=self._hasher.hash(text.secret),
        )
        with self._store.write() as tables:
            tables.put_operator(record)
        self._note("operator token created", record)
        return IssuedToken(record, text)

    def all(self) -> list[OperatorToken]:
        """All tokens, oldest first, the ended ones too. Raises `ControlStoreUnavailable`."""
        with self._store.read() as tables:
            return sorted(tables.operators(), key=lambda token: (token.created_at, token.token_id))

    def revoke(self, token_id: str) -> OperatorToken:
        """Ends a token, and its sessions, at once.

        Raises `OperatorError`, `ControlStoreUnavailable`.
        """
        with self._store.write() as tables:
            token = tables.operator(token_id) if token_id.isascii() and token_id else None
            if token is None:
                message = f"there is no operator token {token_id}"
                raise OperatorError(message)
            if token.revoked_at is None:
                token = replace(token, revoked_at=int(self._clock()))
                tables.put_operator(token)
        self._note("operator token revoked", token)
        return token

    def holder(self, text: str) -> OperatorToken | None:
        """The token of this text, `None` where it is none that is good now.

        Raises `ControlStoreUnavailable`.
        """
        parts = read_token_text(text)
        if parts is None:
            return None
        found = self._good(parts)
        # On another node it may have been made a moment ago.
        return self._good(parts) if found is None and self._store.renew() else found

    def active(self, token_id: str) -> OperatorToken | None:
        """The token of an id, `None` where it has ended. Raises `ControlStoreUnavailable`."""
        token = self._store.ask(lambda tables: tables.operator(token_id))
        return None if token is None or token.ended(self._clock()) else token

    def _good(self, parts: TokenText) -> OperatorToken | None:
        token = self._store.ask(lambda tables: tables.operator(parts.token_id))
        is_genuine = self._hasher.proves(parts.secret, None if token is None else token.hash)
        return token if token and is_genuine and not token.ended(self._clock()) else None

    def _note(self, event: str, token: OperatorToken) -> None:
        self._audit(event, token_id=token.token_id, name=token.name, expires_at=token.expires_at)
