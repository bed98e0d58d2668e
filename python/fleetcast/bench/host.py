"""The process of a hosted engine: `python -m fleetcast.bench.host MODULE FOLDER SOCKET`."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from importlib import import_module
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from fleetcast.bench.faults import fault_of


class _Host:
    """Serves an engine to connections, each in its own thread."""

    def __init__(self, engine: Any) -> None:  # noqa: ANN401 - see `drivers.hosted`
        self._engine = engine
        self._lock = threading.Lock()
        self._received = 0.0

    def serve(self, connection: Connection) -> None:
        session = self._engine.session()
        while True:
            try:
                text = connection.recv_bytes()
            except (EOFError, OSError):
                session.close()
                return
            before = time.thread_time()
            method, arguments = pickle.loads(text)  # noqa: S301 - our own parent's
            with self._lock:
                self._received += time.thread_time() - before
            answer: tuple[str | None, object]
            try:
                answer = None, self._call(session, method, arguments)
            except Exception as error:  # noqa: BLE001 - the caller gets every fault
                answer = fault_of(error), None
            connection.send(answer)

    def _call(self, session: Any, method: str, arguments: tuple[Any, ...]) -> object:  # noqa: ANN401 - of any engine
        if method == "cpu_seconds":
            return time.process_time() - self._received
        if method == "settle":
            return self._engine.settle()
        if method == "close_engine":
            return self._engine.close()
        return getattr(session, method)(*arguments)


def main() -> None:
    """Serves until standard input ends, which happens when the parent process ends.

    The first bytes of standard input are the names in the rows, pickled.
    """
    module, folder, address = sys.argv[1:]
    names = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent's
    host = _Host(import_module(module).engine(Path(folder), names))
    listener = Listener(address, "AF_UNIX", backlog=64)

    def accept() -> None:
        while True:
            threading.Thread(target=host.serve, args=(listener.accept(),), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
