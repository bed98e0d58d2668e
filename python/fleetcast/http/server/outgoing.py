"""An answer on its way to its client, and how long the client may take for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from fleetcast.http.server.limits import ConnectionLimits

_PARTS_MAX = 64  # of an answer in one call; the kernel takes no more than 1,024


class Outgoing:
    """The parts that the client has not taken; instants are of `time.monotonic`, in seconds."""

    def __init__(self, parts: Iterable[bytes], limits: ConnectionLimits, now: float) -> None:
        self.parts: list[bytes | memoryview] = [part for part in parts if part]
        self.deadline = now + limits.answer_seconds
        """Instant at which the client loses its connection, unless it takes more until then."""
        self._limits = limits
        self._began_at = now
        self._taken_bytes = 0

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the client has not taken."""
        return sum(map(len, self.parts))

    def send(self, sock: socket.socket, now: float) -> int:
        """Sends as much as the socket takes at once, and counts it in bytes.

        Raises `BlockingIOError` where it takes nothing, `OSError` where the peer is gone.
        """
        sent = left = sock.sendmsg(self.parts[:_PARTS_MAX])
        while self.parts and left >= len(self.parts[0]):
            left -= len(self.parts.pop(0))
        if self.parts:
            self.parts[0] = memoryview(self.parts[0])[left:]
        self._taken_bytes += sent
        slowest_seconds = self._taken_bytes / self._limits.answer_bytes_per_second_min
        # The kernel takes some megabytes at once, so the slowest rate alone would be generous.
        self.deadline = min(now, self._began_at + slowest_seconds) + self._limits.answer_seconds
        return sent
