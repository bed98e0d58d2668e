"""Operator tokens: who may use the console, and until when."""

from __future__ import annotations

from typing import NamedTuple

from fleetcast.accounts.audited import AuditedRecords
from fleetcast.accounts.store import OPERATOR_PEPPER
from fleetcast.engine import OperatorToken, Records, SecretText
from fleetcast.errors import OperatorError

TOKEN_SECONDS = 30 * 86_400
"""Lifetime of a token if the operator does not choose another."""
_NAME_CHARACTERS_MAX = 100


class IssuedToken(NamedTuple):
    """A new token: its record and its text. Only the hash of the text is stored."""

    record: OperatorToken
    text: SecretText


class Operators(AuditedRecords):
    """The operator tokens of one installation."""

    PEPPER = OPERATOR_PEPPER

    def create(self, *, name: str = "", lifetime_seconds: int = TOKEN_SECONDS) -> IssuedToken:
        """Issues a token. Raises `OperatorError`, `ControlStoreUnavailable`."""
        if len(name) > _NAME_CHARACTERS_MAX or not name.isprintable():
            message = f"the name must be at most {_NAME_CHARACTERS_MAX} printable characters"
            raise OperatorError(message)
        if lifetime_seconds < 1:
            message = "a token lives for 1s at least"
            raise OperatorError(message)
        text = SecretText("token")
        now = self.now()
        record = OperatorToken(
            token_id=text.id,
            name=name,
            created_at=now,
            expires_at=now + lifetime_seconds,
            revoked_at=None,
            hash=text.hash(self._pepper),
        )
        with self._store.write() as view:
            record.put(view)
        self._note("operator token created", record)
        return IssuedToken(record, text)

    def all(self) -> list[OperatorToken]:
        """Returns all tokens, oldest first, also ended tokens. Raises `ControlStoreUnavailable`."""
        with self._store.read() as view:
            tokens = OperatorToken.all(view).values()
        return sorted(tokens, key=lambda token: (token.created_at, token.token_id))

    def revoke(self, token_id: str) -> OperatorToken:
        """Ends a token and its sessions at once.

        Raises `OperatorError`, `ControlStoreUnavailable`.
        """
        with self._store.write() as view:
            token = OperatorToken.get(view, token_id)
            if token is None:
                message = f"there is no operator token {token_id}"
                raise OperatorError(message)
            if token.revoked_at is None:
                token = token.replace(revoked_at=self.now())
                token.put(view)
        self._note("operator token revoked", token)
        return token

    def holder(self, text: str) -> OperatorToken | None:
        """Returns the valid token with this text, or `None`.

        Raises `ControlStoreUnavailable`.
        """
        given = SecretText.read("token", text)
        if given is None:
            return None
        found = self._good(given)
        # Another node may have issued the token a moment ago.
        return self._good(given) if found is None and self._store.ask(Records.renew) else found

    def active(self, token_id: str) -> OperatorToken | None:
        """Returns the token of an id; `None` if it has ended. Raises `ControlStoreUnavailable`."""
        with self._store.read() as view:
            token = OperatorToken.get(view, token_id)
        return None if token is None or token.ended(self.now()) else token

    def _good(self, given: SecretText) -> OperatorToken | None:
        token = self.active(given.id)
        is_genuine = given.proves(self._pepper, None if token is None else token.hash)
        return token if is_genuine else None

    def _note(self, event: str, token: OperatorToken) -> None:
        self._audit(event, token_id=token.token_id, name=token.name, expires_at=token.expires_at)
