"""Signing in and out. A token is given once, and a cookie stands for the session that it opens.

Browsers take a `Secure` cookie over TLS, and over plain HTTP only from loopback. The token itself
is in no cookie and no page.
"""

from __future__ import annotations

from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from fleetcast.console.answers import ConsoleRefused
from fleetcast.errors import OperatorError
from fleetcast.logs import audit_refusal

if TYPE_CHECKING:
    from fleetcast.accounts import ConsoleSessions, OpenSession, Operators
    from fleetcast.console.guesses import Guesses

# The prefix tells browsers to take the cookie only as set here. A page of another port, of plain
# HTTP or of a sister domain cannot replace the cookie.
COOKIE = "__Host-fleetcast_console"
_FLAGS = "Path=/; Secure; HttpOnly; SameSite=Strict"


class Sessions:
    """Opens, finds and ends the sessions of requests."""

    def __init__(self, operators: Operators, kept: ConsoleSessions, guesses: Guesses) -> None:
        self._operators = operators
        self._kept = kept
        self._guesses = guesses

    def open(self, authorization: str, address: str) -> tuple[OpenSession, str]:
        """Opens a session for the token in an `Authorization` field.

        Returns the session with the cookie to set. Raises `ConsoleRefused`,
        `ControlStoreUnavailable`.
        """
        self._guesses.check(address)
        scheme, _, text = authorization.partition(" ")
        token = self._operators.holder(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            self._guesses.failed(address)
            audit_refusal("console sign-in refused", client=address)
            message = "This token is not good: make one with `fleetcast operator token`."
            raise ConsoleRefused(401, "auth_failed", message)
        session, text = self._kept.open(token, address)
        lifetime_seconds = session.record.expires_at - session.record.opened_at
        return session, f"{COOKIE}={text}; {_FLAGS}; Max-Age={lifetime_seconds}"

    def find(self, cookies: str) -> OpenSession | None:
        """Returns the session of a `Cookie` field. Raises `ControlStoreUnavailable`."""
        return self._kept.find(_cookie(cookies))

    def end(self, cookies: str) -> str:
        """Ends the session of a `Cookie` field. Returns a cookie that removes the browser's cookie.

        Raises `ControlStoreUnavailable`.
        """
        session = self.find(cookies)
        if session is not None:
            with suppress(OperatorError):  # another request has ended it just now
                self._kept.end(session.record.session_id)
        return f"{COOKIE}=; {_FLAGS}; Max-Age=0"


def _cookie(field: str) -> str:
    try:
        morsel = SimpleCookie(field).get(COOKIE)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value
