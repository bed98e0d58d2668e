"""Servers at a distance: what passes between them and a node takes a while, each way."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK_BYTES = 65536


class Distance:
    """Takes connections for a server. Each piece of bytes is late, and holds up no other piece."""

    def __init__(self, server: str) -> None:
        host, _, port = server.partition(":")
        self._server = (host, int(port))
        self.late_seconds = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self._begin(self._accept)

    def close(self) -> None:
        """Takes no more connections. Those that stand end with their ends."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @staticmethod
    def _begin(work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                for source, target in ((client, server), (server, client)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                    self._begin(self._take, source, pieces)
                    self._begin(self._give, target, pieces)

    def _take(self, source: socket.socket, pieces: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        chunk = b"-"
        while chunk:
            try:
                chunk = source.recv(CHUNK_BYTES)
            except OSError:
                chunk = b""
            pieces.put((time.monotonic() + self.late_seconds, chunk))

    @staticmethod
    def _give(target: socket.socket, pieces: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        with contextlib.suppress(OSError):
            while True:
                due, chunk = pieces.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not chunk:
                    target.shutdown(socket.SHUT_RDWR)
                    return
                target.sendall(chunk)
