"""Engines that run within a program: here in a process of their own, to be measured and killed.

A subclass names the module of the engine. The module's `engine(folder, names)` opens the engine.
The engine's `session()` has the calls of `Session`. Batches are sent to the process pickled. The
CPU of unpickling does not count as the engine's.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Client, Connection
from typing import TYPE_CHECKING, Any, ClassVar

from fleetcast.bench.driver import Fields, ProgramDriver, Samples
from fleetcast.bench.faults import DatabaseFault
from fleetcast.bench.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence


class HostedSession:
    """A connection to the process that has the engine."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - the method's result
        """Calls a method of the engine's session.

        Raises `DatabaseFault` if the method raises, `EOFError` or `OSError` if the process has
        ended.
        """
        self._connection.send((method, arguments))
        fault, answer = self._connection.recv()
        if fault:
            raise DatabaseFault(fault)
        return answer

    def write(self, payload: Any) -> None:  # noqa: ANN401 - see `Session`
        """See `Session`."""
        self.call("write", payload)

    def newest(self, measurement: str, end_ns: int) -> dict[str, tuple[int, Fields]]:
        found: dict[str, tuple[int, Fields]] = self.call("newest", measurement, end_ns)
        return found

    def window(
        self, measurement: str, entities: Sequence[str], start_ns: int, end_ns: int
    ) -> Samples:
        found: Samples = self.call("window", measurement, list(entities), start_ns, end_ns)
        return found

    def close(self) -> None:
        self._connection.close()


class Hosted(ProgramDriver):
    """A database in a process that has no other work."""

    module: ClassVar[str]

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder.with_suffix(".log")
        # A private folder keeps other users out and keeps the path short: a socket's path has 107
        # bytes.
        self._place = tempfile.TemporaryDirectory(prefix="fleetcast-")
        self._socket = f"{self._place.name}/socket"
        command = [sys.executable, "-m", "fleetcast.bench.host", self.module, str(self.folder)]
        with log.open("wb") as output:
            self.program = subprocess.Popen(
                [*command, self._socket], stdin=subprocess.PIPE, stderr=output
            )
        assert self.program.stdin is not None  # noqa: S101 - a pipe was asked for
        self.program.stdin.write(pickle.dumps(self.names))
        self.program.stdin.flush()
        wait_until(self._answers, self.program, log)
        self._control = self.connect()

    def connect(self) -> HostedSession:
        return HostedSession(Client(self._socket, "AF_UNIX"))

    def settle(self) -> None:
        self._control.call("settle")

    def cpu_seconds(self) -> float | None:
        spent: float = self._control.call("cpu_seconds")
        return spent

    def stop(self) -> None:
        with contextlib.suppress(OSError, EOFError, AttributeError):
            self._control.call("close_engine")
        self.end()

    def end(self) -> None:
        if self.program is not None:
            if self.program.stdin:
                self.program.stdin.close()  # the process ends when its input ends
            super().end()
            self._place.cleanup()

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            self.connect().close()
            return True
        time.sleep(0.01)
        return False
