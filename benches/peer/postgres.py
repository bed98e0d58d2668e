"""PostgreSQL as a peer: COPY of each body in a transaction of its own, as durable as it comes.

Needs its server programs, in `PGBIN` or where Debian puts them. The table has a column for each tag
and field and no index, which is the least that it can do.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from benches.harness.measure import cpu_seconds_of, with_children
from benches.harness.servers import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_NOBODY = 65_534
_TAGS = ("entity_id", "entity_type", "ground_station", "beam")


def programs() -> Path | None:
    """The folder of the server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    folder = Path(os.environ["PGBIN"]) if "PGBIN" in os.environ else None
    return folder or (found[-1].parent if found else None)


def rows(body: bytes) -> str:
    """A JSON body as the CSV that COPY reads."""
    text = io.StringIO()
    writer = csv.writer(text)
    for row in orjson.loads(body):
        tags, fields = row["tags"], row["fields"]
        writer.writerow([row["time"], *(tags[name] for name in _TAGS), *fields.values()])
    return text.getvalue()


class Server:
    """A running server whose files lie in `folder`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self._port = port
        self._user = {"user": _NOBODY, "group": _NOBODY} if os.geteuid() == 0 else {}
        self._process: subprocess.Popen | None = None

    def start(self, fields: tuple[str, ...]) -> None:
        """With one table; the server does not run as root, so its files are another's then."""
        folder = str(self.folder)
        self.folder.mkdir(parents=True)
        if self._user:
            shutil.chown(folder, _NOBODY, _NOBODY)
        initdb = ["initdb", "--pgdata", folder, "--username", "bench", "--auth", "trust"]
        self._run([*initdb, "--encoding", "UTF8", "--locale", "C"])
        options = ["-D", folder, "-p", str(self._port), "-c", "listen_addresses=127.0.0.1"]
        server = [self._program("postgres"), *options, "-c", "unix_socket_directories="]
        with Path(f"{folder}.log").open("wb") as log:
            self._process = subprocess.Popen(server, stdout=log, stderr=log, **self._user)
        while subprocess.run(
            [self._program("pg_isready"), *self._address()], check=False, stdout=subprocess.DEVNULL
        ).returncode:
            assert self._process.poll() is None, "PostgreSQL did not start"
        columns = ["time timestamptz", *(f"{name} text" for name in _TAGS)]
        columns += [f"{name} float8" for name in fields]
        self.ask(f"create table link ({', '.join(columns)})")

    def ask(self, statement: str) -> str:
        psql = [self._program("psql"), *self._address(), "-d", "postgres", "-XAtc", statement]
        return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.strip()

    def copy(self, files: list[Path]) -> None:
        """Each file in a transaction, over some connections."""
        clients = []
        for number in range(CONNECTIONS):
            script = "".join(f"\\copy link from '{f}' csv\n" for f in files[number::CONNECTIONS])
            psql = [self._program("psql"), *self._address(), "-d", "postgres", "-qX"]
            client = subprocess.Popen(psql, stdin=subprocess.PIPE, text=True)
            client.stdin.write(script)
            client.stdin.close()
            clients.append(client)
        assert not any(client.wait() for client in clients)

    def cpu_seconds(self) -> float:
        """CPU of all its processes, those that have ended included."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        ended = (int(fields[13]) + int(fields[14])) / _TICKS_PER_SECOND
        return cpu_seconds_of(with_children(self._process.pid)) + ended

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)

    def _address(self) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(self._port), "-U", "bench"]

    def _program(self, name: str) -> str:
        folder = programs()
        assert folder is not None
        return str(folder / name)

    def _run(self, command: list[str]) -> None:
        command[0] = self._program(command[0])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **self._user)


@contextmanager
def running(folder: Path, port: int, fields: tuple[str, ...]) -> Iterator[Server]:
    """A server with an empty table."""
    server = Server(folder, port)
    try:
        server.start(fields)
        yield server
    finally:
        server.stop()
