"""Sessions of operators: a token is given once, and a cookie stands for it until it ends.

The cookie names the token and its own end, under a keyed hash; the service keeps nothing of it. It
is asked about with each request, so a session ends with the token it came from, revoked or
expired, in every process and on every node. The token itself is in no cookie and no page.
"""

from __future__ import annotations

import hmac
import re
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.console.answers import ConsoleRefused
from fleetcast.logs import audit, audit_refusal
from fleetcast.security.master_key import derive

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts import Operators, OperatorToken
    from fleetcast.console.guesses import Guesses

SESSION_SECONDS = 12 * 3600
COOKIE = "fleetcast_console"
_LABEL = "fleetcast console session 1"
_COOKIE = re.compile(r"([a-z2-7]{16})\.([0-9]{1,12})\.([0-9a-f]{64})")
_FLAGS = "Path=/console/; HttpOnly; SameSite=Strict"


class OperatorSession(NamedTuple):
    """An operator who has signed in, until `expires_at`, seconds since 1970."""

    token: OperatorToken
    expires_at: int


class Sessions:
    """Makes and checks sessions. `clock` gives seconds since 1970."""

    def __init__(
        self,
        operators: Operators,
        master_key: bytes,
        guesses: Guesses,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._operators = operators
        self._key = derive(master_key, _LABEL)
        self._guesses = guesses
        self._clock = clock

    def open(self, authorization: str, address: str) -> tuple[OperatorSession, str]:
        """A session for the token in an `Authorization` field, and the cookie to set.

        Raises `ConsoleRefused`, `ControlStoreUnavailable`.
        """
        self._guesses.check(address)
        scheme, _, text = authorization.partition(" ")
        token = self._operators.holder(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            self._guesses.failed(address)
            audit_refusal("console sign-in refused", client=address)
            message = "This token is not good: make one with `fleetcast operator token`."
            raise ConsoleRefused(401, "auth_failed", message)
        now = int(self._clock())
        session = OperatorSession(token, min(now + SESSION_SECONDS, token.expires_at))
        audit("console opened", client=address, token_id=token.token_id, name=token.name)
        value = f"{token.token_id}.{session.expires_at}"
        cookie = f"{COOKIE}={value}.{self._hash(value, token)}; {_FLAGS}"
        return session, f"{cookie}; Max-Age={session.expires_at - now}"

    def find(self, cookies: str) -> OperatorSession | None:
        """The session of a `Cookie` field. Raises `ControlStoreUnavailable`."""
        match = _COOKIE.fullmatch(_cookie(cookies))
        if match is None or int(match[2]) <= self._clock():
            return None
        token = self._operators.active(match[1])
        if token is None:
            return None
        genuine = hmac.compare_digest(self._hash(f"{match[1]}.{match[2]}", token), match[3])
        return OperatorSession(token, int(match[2])) if genuine else None

    def _hash(self, value: str, token: OperatorToken) -> str:
        """Takes the token's own hash in: a cookie of one token never stands for another."""
        return hmac.digest(self._key, f"{value}.{token.hash}".encode(), "sha256").hex()


def ended_cookie() -> str:
    """A cookie that takes the other one away."""
    return f"{COOKIE}=; {_FLAGS}; Max-Age=0"


def _cookie(field: str) -> str:
    try:
        morsel = SimpleCookie(field).get(COOKIE)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value
