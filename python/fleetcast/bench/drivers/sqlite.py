"""SQLite: a transaction for each batch, write-ahead log, synced with each commit."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, Any

from fleetcast.bench.drivers import sql
from fleetcast.bench.drivers.hosted import Hosted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from fleetcast.bench.drivers.sql import Tables
    from fleetcast.bench.rows import RowNames, SentRow

_Batch = dict[str, list[list[object]]]


class Sqlite(Hosted):
    """SQLite within a process of Python."""

    module = __name__
    about = f"SQLite {sqlite3.sqlite_version}: WAL, synchronous=FULL, an index on (entity_id, time)"

    def encode(self, rows: Sequence[SentRow]) -> object:
        return sql.Tables(self.names).cells(rows)


class SqliteEngine:
    """A database file. SQLite allows one writer at a time, so sessions wait for a lock to write."""

    def __init__(self, folder: Path, names: RowNames) -> None:
        self._file = folder / "rows.sqlite"
        self._writes = threading.Lock()
        self._tables = tables = sql.Tables(names)
        with self.connection() as connection:
            for statement in [*tables.create("TEXT", "REAL"), *tables.indexes()]:
                connection.execute(statement)

    def connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=60)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def session(self) -> SqliteSession:
        return SqliteSession(self.connection(), self._tables, self._writes)

    def settle(self) -> None:
        self.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Closes no file: each session closes its own connection."""


class SqliteSession(sql.SqlSession):
    """See `Session`."""

    def __init__(
        self, connection: sqlite3.Connection, tables: Tables, writes: threading.Lock
    ) -> None:
        super().__init__(tables)
        self._connection = connection
        self._writes = writes

    def write(self, batch: _Batch) -> None:
        with self._writes, self._connection:
            for measurement, rows in batch.items():
                self._connection.executemany(self._tables.insert(measurement), rows)

    def ask(self, statement: str, values: Sequence[Any] = ()) -> Iterable[Sequence[Any]]:
        return self._connection.execute(statement, values)

    def close(self) -> None:
        self._connection.close()


engine = SqliteEngine
