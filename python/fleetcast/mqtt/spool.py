"""The spool: batches that are not stored yet, and identities of messages that have come.

The spool is one SQLite file, synced at each change. So a bridge that is killed at any moment knows
its batches afterwards. It also knows the parts that were sent and not answered, and the messages
that it has seen.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetcast.client.spool import SpoolInUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS batch (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  records BLOB NOT NULL,
  parts TEXT NOT NULL,    -- spans of records still to be sent, the next one last
  sent_at REAL,           -- when the last of them was sent, while nobody knows if it is stored
  acknowledged INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS seen (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  identity BLOB NOT NULL UNIQUE,
  batch INTEGER NOT NULL,
  timed INTEGER NOT NULL
);
"""
DATABASE_FILE = "spool.sqlite"
SEEN_MAX = 200_000
"""Messages that the bridge recognises if they come again."""
_PRIMARY_CODE = 0xFF
_FAULTS = {
    sqlite3.SQLITE_BUSY: "another program uses it: end that",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: see who may read and write it and its folder",
    sqlite3.SQLITE_READONLY: "cannot be written: see who may write it and its folder",
    sqlite3.SQLITE_IOERR: "its disk failed",
    sqlite3.SQLITE_FULL: "its disk is full",
}


def spool_problem(folder: Path, error: sqlite3.Error) -> str:
    """Describes the fault of the spool in `folder`, and the remedy."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
    damaged = "is damaged, or no spool of this version: move it away, and a new one is made"
    return f"{folder / DATABASE_FILE}: {_FAULTS.get(code, damaged)}"


@dataclass(frozen=True)
class MessageIdentity:
    """Equality of two deliveries of one message.

    A message whose records have times is known by topic and payload for as long as it is
    remembered. Other messages are known by their packet too, until the broker has the
    acknowledgment. Then the broker may give the packet's number to another message.
    """

    digest: bytes
    timed: bool

    @classmethod
    def of(cls, topic: str, payload: bytes, packet: int | None) -> MessageIdentity:
        """Returns the identity. `packet` is `None` if the records of the message have times."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (topic.encode(), payload, str(packet).encode()):
            digest.update(len(part).to_bytes(8) + part)
        return cls(digest.digest(), packet is None)


@dataclass(frozen=True)
class Spooled:
    """A batch, and the spans of its records that are still to be sent, the next span last."""

    id: int
    records: list[dict[str, Any]]
    parts: list[tuple[int, int]]
    sent_at: float | None


class MessageSpool:
    """Batches of one folder, in order. Any thread may call the methods.

    Raises `SpoolInUse`, and `OSError` or `sqlite3.Error` if the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_file)
            message = f"{folder}: another bridge uses this spool"
            raise SpoolInUse(message) from None
        self._database = sqlite3.connect(folder / DATABASE_FILE, check_same_thread=False)
        self._lock = threading.Lock()
        self._database.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {_TABLES}"
        )

    def close(self) -> None:
        """Lets another bridge have the folder."""
        self._database.close()
        os.close(self._lock_file)

    def is_known(self, identity: MessageIdentity) -> bool:
        """Returns true if the message is or was in a batch, and is not forgotten."""
        query = "SELECT 1 FROM seen WHERE identity = ?"
        with self._lock:
            return self._database.execute(query, (identity.digest,)).fetchone() is not None

    def forget(self, identities: Iterable[MessageIdentity]) -> None:
        """Forgets messages without times, because the broker has their acknowledgments."""
        with self._lock, self._database as database:
            database.executemany(
                "DELETE FROM seen WHERE identity = ? AND NOT timed",
                [(identity.digest,) for identity in identities],
            )

    def forget_acknowledged(self) -> None:
        """Forgets all messages without times that were acknowledged."""
        self._change(
            "DELETE FROM seen WHERE NOT timed"
            " AND batch NOT IN (SELECT id FROM batch WHERE NOT acknowledged)",
            (),
        )

    def forget_packets(self) -> None:
        """Forgets all messages without times, because the broker counts packets from 1 again."""
        self._change("DELETE FROM seen WHERE NOT timed", ())

    def append(
        self,
        records: Sequence[dict[str, Any]],
        identities: Iterable[MessageIdentity],
        *,
        acknowledged: bool,
    ) -> int:
        """Stores a batch and syncs it; returns its id."""
        body = json.dumps(records, separators=(",", ":")).encode()
        parts = json.dumps([[0, len(records)]])
        with self._lock, self._database as database:
            found = database.execute(
                "INSERT INTO batch (records, parts, acknowledged) VALUES (?, ?, ?)",
                (body, parts, acknowledged),
            )
            batch = found.lastrowid or 0
            database.executemany(
                "INSERT OR REPLACE INTO seen (identity, batch, timed) VALUES (?, ?, ?)",
                [(identity.digest, batch, identity.timed) for identity in identities],
            )
            database.execute(
                "DELETE FROM seen WHERE id <= (SELECT max(id) FROM seen) - ?"
                " AND batch NOT IN (SELECT id FROM batch)",
                (SEEN_MAX,),
            )
        return batch

    def first(self) -> Spooled | None:
        """Returns the oldest batch, or `None` if no batch waits."""
        with self._lock:
            found = self._database.execute(
                "SELECT id, records, parts, sent_at FROM batch ORDER BY id LIMIT 1"
            ).fetchone()
        if found is None:
            return None
        batch, records, parts, sent_at = found
        spans = [(first, end) for first, end in json.loads(parts)]
        return Spooled(batch, json.loads(records), spans, sent_at)

    def last(self) -> int | None:
        """Returns the id of the newest batch, or `None` if no batch waits."""
        with self._lock:
            found: int | None = self._database.execute("SELECT max(id) FROM batch").fetchone()[0]
        return found

    def note_sent(self, batch: int, sent_at: float | None) -> None:
        """Notes when the next part was sent, or that it was not sent after all."""
        self._change("UPDATE batch SET sent_at = ? WHERE id = ?", (sent_at, batch))

    def replace_parts(self, batch: int, parts: Sequence[tuple[int, int]]) -> None:
        """Notes the parts that are still to be sent. A batch without parts is removed."""
        if parts:
            query = "UPDATE batch SET parts = ?, sent_at = NULL WHERE id = ?"
            self._change(query, (json.dumps(parts), batch))
        else:
            self._change("DELETE FROM batch WHERE id = ?", (batch,))

    def size(self) -> int:
        """Bytes of all batches."""
        with self._lock:
            query = "SELECT coalesce(sum(length(records)), 0) FROM batch"
            return int(self._database.execute(query).fetchone()[0])

    def _change(self, query: str, values: tuple[object, ...]) -> None:
        with self._lock, self._database as database:
            database.execute(query, values)
