"""Sessions of operators at the console: who has signed in, from which address, and until when.

The control store keeps each session. A session therefore holds on every node and over restarts, and
ends everywhere at once. The store has only a keyed hash of the text that the browser keeps.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts.audited import AuditedRecords
from fleetcast.accounts.store import SESSION_PEPPER, ControlStoreUnavailable
from fleetcast.engine import ConsoleSession, OperatorToken, Records, SecretText
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from fleetcast.engine import RecordsTransaction

LIFETIME_SECONDS = 12 * 3600
SESSIONS_PER_TOKEN_MAX = 100
"""Most open sessions of a token. A further sign-in ends the session of the token opened first."""
NOTED_EVERY_SECONDS = 60
"""Seconds between two notes that a session is in use, so that few requests write to the store."""


class OpenSession(NamedTuple):
    """A session that has not ended, and the token that opened it."""

    record: ConsoleSession
    token: OperatorToken


class ConsoleSessions(AuditedRecords):
    """The console sessions of one installation."""

    PEPPER = SESSION_PEPPER

    def open(self, token: OperatorToken, address: str) -> tuple[OpenSession, str]:
        """Opens a session and returns it with its text, which is not stored.

        Removes the sessions that have ended. Raises `ControlStoreUnavailable`.
        """
        now = self.now()
        text = SecretText("session")
        record = ConsoleSession(
            session_id=text.id,
            token_id=token.token_id,
            address=address,
            opened_at=now,
            used_at=now,
            expires_at=min(now + LIFETIME_SECONDS, token.expires_at),
            hash=text.hash(self._pepper),
        )
        with self._store.write() as view:
            mine = self._swept(view, token)
            if len(mine) >= SESSIONS_PER_TOKEN_MAX:
                ConsoleSession.delete(view, mine[0].session_id)
            record.put(view)
        session = OpenSession(record, token)
        self._note("console opened", session)
        return session, str(text)

    def find(self, text: str) -> OpenSession | None:
        """Returns the session of a text and notes its use. Returns `None` if the session has ended.

        Raises `ControlStoreUnavailable`.
        """
        given = SecretText.read("session", text)
        if given is None:
            return None
        session = self._good(given)
        # Another node may have opened the session just now.
        if session is None and self._store.ask(Records.renew):
            session = self._good(given)
        if session and self._clock() - session.record.used_at >= NOTED_EVERY_SECONDS:
            self._use(session.record.session_id)
        return session

    def all(self) -> list[OpenSession]:
        """Returns all sessions that have not ended, oldest first.

        Raises `ControlStoreUnavailable`.
        """
        with self._store.read() as view:
            records = ConsoleSession.all(view).values()
            living = [self._living(view, record) for record in records]
        found = [session for session in living if session is not None]
        return sorted(found, key=lambda each: (each.record.opened_at, each.record.session_id))

    def end(self, session_id: str) -> OpenSession:
        """Ends a session at once. Raises `OperatorError`, `ControlStoreUnavailable`."""
        with self._store.write() as view:
            record = ConsoleSession.get(view, session_id)
            session = record and self._living(view, record)
            if not session:
                message = f"there is no console session {session_id}"
                raise OperatorError(message)
            ConsoleSession.delete(view, session_id)
        self._note("console session ended", session)
        return session

    def _good(self, given: SecretText) -> OpenSession | None:
        with self._store.read() as view:
            record = ConsoleSession.get(view, given.id)
            is_genuine = given.proves(self._pepper, None if record is None else record.hash)
            return self._living(view, record) if record and is_genuine else None

    def _living(self, view: RecordsTransaction, record: ConsoleSession) -> OpenSession | None:
        """Returns the session of a record, or `None` if the session or its token has ended."""
        now = self.now()
        token = OperatorToken.get(view, record.token_id)
        if token is None or token.ended(now) or record.ended(now):
            return None
        return OpenSession(record, token)

    def _use(self, session_id: str) -> None:
        # Operators need the console most while a disk is full. A session whose use cannot be noted
        # goes on until its idle end.
        with suppress(ControlStoreUnavailable), self._store.write() as view:
            record = ConsoleSession.get(view, session_id)
            if record is not None:  # another request may have ended it just now
                record.replace(used_at=self.now()).put(view)

    def _swept(self, view: RecordsTransaction, token: OperatorToken) -> list[ConsoleSession]:
        """Removes sessions that have ended.

        Returns the other sessions of the token, oldest first.
        """
        mine = []
        for record in ConsoleSession.all(view).values():
            if self._living(view, record) is None:
                ConsoleSession.delete(view, record.session_id)
            elif record.token_id == token.token_id:
                mine.append(record)
        return sorted(mine, key=lambda record: (record.opened_at, record.session_id))

    def _note(self, event: str, session: OpenSession) -> None:
        record, token = session
        self._audit(
            event,
            client=record.address,
            session_id=record.session_id,
            token_id=token.token_id,
            name=token.name,
        )
