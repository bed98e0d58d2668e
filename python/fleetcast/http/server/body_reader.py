"""Receives a body that comes after its head."""

from __future__ import annotations

import contextlib
import socket


class BodyReader:
    """Reads a body of a known length from a socket that does not block.

    The kernel wakes the loop once, when the whole body is there (or the peer is gone, or no more
    fits); one read then gives `bytes` without a copy.
    """

    def __init__(self, sock: socket.socket, body_bytes: int) -> None:
        self._sock = sock
        self._body_bytes = body_bytes
        self._partial = bytearray()
        self._filled_bytes = 0
        self._low_water_bytes = 1
        self._wake_at(body_bytes)

    def read(self) -> bytes | None:
        """The body, or its beginning where the peer sends no more; `None` while more is to come.

        Raises `BlockingIOError` where nothing has come, `OSError` where the peer is gone.
        """
        if self._partial:
            view = memoryview(self._partial)
            count = self._sock.recv_into(view[self._filled_bytes :])
            self._filled_bytes += count
            if count == 0 or self._filled_bytes == self._body_bytes:
                return self._end(bytes(view[: self._filled_bytes]))
        else:
            body = self._sock.recv(self._body_bytes)
            if not body or len(body) == self._body_bytes:
                return self._end(body)
            self._partial = bytearray(self._body_bytes)
            self._partial[: len(body)] = body
            self._filled_bytes = len(body)
        self._wake_at(self._body_bytes - self._filled_bytes)
        return None

    def _end(self, body: bytes) -> bytes:
        self._wake_at(1)
        return body

    def _wake_at(self, count: int) -> None:
        if count != self._low_water_bytes:
            self._low_water_bytes = count
            with contextlib.suppress(OSError):  # without it the loop only wakes more often
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
