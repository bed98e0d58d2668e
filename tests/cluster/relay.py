"""A relay before a server, which is told where to forward, is at a distance and has faults."""

from __future__ import annotations

import queue
import socket
import threading
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK_BYTES = 65536
STORED = b'HTTP/1.1 200 OK\r\nETag: "0"\r\nContent-Length: 0\r\n\r\n'


class Relay:
    """Takes connections at an address of its own, and ends them at once while it is closed."""

    def __init__(self) -> None:
        self._left = ExitStack()
        self._threads: list[threading.Thread] = []
        self._listener = self._kept(socket.create_server(("127.0.0.1", 0)))
        self._server = ""
        self._is_over = threading.Event()
        self.late_seconds = 0.0
        """Time by which each piece is late, each way. It holds up no piece behind it."""
        self.is_silent = False
        """True while it takes requests, and forwards no answer."""
        self.is_lying = False
        """True while it answers a PUT of HTTP as done, and forwards it to nobody."""
        self.answer_bytes: int | None = None
        """Bytes of answers that still pass. The connection is then cut, once."""
        self._begin(self._accept)

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def open(self, server: str) -> None:
        """Forwards each further connection to the server at an address."""
        self._server = server

    def behave(self) -> None:
        """Ends all faults."""
        self.late_seconds, self.is_silent, self.is_lying = 0.0, False, False
        self.answer_bytes = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        # The listener ends first, and with it the thread that adds others.
        _end(self._listener)
        self._threads[0].join()
        self._left.close()
        for thread in self._threads:
            thread.join()

    def _kept(self, opened: socket.socket) -> socket.socket:
        self._left.callback(opened.close)
        self._left.callback(_end, opened)
        return opened

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._kept(self._listener.accept()[0])
                if not self._server:
                    _end(client)
                    continue
                host, _, port = self._server.partition(":")
                server = self._kept(socket.create_connection((host, int(port))))
                questions, answers = Way(self, client, server), Way(self, server, client)
                self._begin(questions.take)
                self._begin(answers.take)
                self._begin(questions.pass_on, self._ask)
                self._begin(answers.pass_on, self._answer)

    def wait_until(self, due: float) -> None:
        """Waits for a time of the monotonic clock, or for the end of the relay."""
        self._is_over.wait(max(0.0, due - time.monotonic()))

    def _ask(self, chunk: bytes, way: Way) -> bool:
        if not (self.is_lying and chunk.startswith(b"PUT ")):
            way.target.sendall(chunk)
            return True
        head, _, body = chunk.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-l")]
        left = int(lengths[0].partition(b":")[2]) - len(body)
        while left > 0 and (more := way.next_piece()):
            left -= len(more)
        way.source.sendall(STORED)
        return True

    def _answer(self, chunk: bytes, way: Way) -> bool:
        if self.is_silent:
            return True
        client = way.target
        left, count = self.answer_bytes, len(chunk)
        if left is None:
            client.sendall(chunk)
            return True
        client.sendall(chunk[:left])
        self.answer_bytes = left - count if left > count else None
        return left > count


class Way:
    """One direction of a connection: pieces that were taken, and are due some time later."""

    def __init__(self, relay: Relay, source: socket.socket, target: socket.socket) -> None:
        self._relay, self.source, self.target = relay, source, target
        target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def take(self) -> None:
        """Takes pieces until the source ends."""
        chunk = b"-"
        while chunk:
            chunk = b""
            with suppress(OSError):
                chunk = self.source.recv(CHUNK_BYTES)
            self._pieces.put((time.monotonic(), chunk))

    def next_piece(self) -> bytes:
        """Returns the next piece when it is due, and nothing after the last."""
        taken, chunk = self._pieces.get()
        self._relay.wait_until(taken + self._relay.late_seconds)
        return chunk

    def pass_on(self, forward: Callable[[bytes, Way], bool]) -> None:
        """Forwards pieces until there are no more, or until the way is cut. Ends both sockets."""
        with suppress(OSError):
            while (chunk := self.next_piece()) and forward(chunk, self):
                pass
        _end(self.source)
        _end(self.target)


def _end(opened: socket.socket) -> None:
    """Wakes the thread that waits for bytes, as `close` does not."""
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)
