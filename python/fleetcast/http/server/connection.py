"""One client connection: what it waits for, until when, and what comes next.

    IDLE -> HEAD -> BUSY -> SEND -> IDLE             the usual round
                    BUSY -> BODY -> BUSY             a body that is wanted and not there
                                    SEND -> SKIP     input that nobody reads, then IDLE
                                    SEND -> LINGER   input that nobody reads, then closed

Nothing here blocks. The loop advances a connection when its socket is ready; while it is BUSY it
belongs to one pool thread, which ends that with `answer` or `await_body`. Bytes that belong to the
next request stay in the kernel's buffer, so pipelined requests need no buffer of their own.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import math
import socket
import struct
import termios
from typing import TYPE_CHECKING

from fleetcast.http.server import framing
from fleetcast.surface.fair_queue import Lane

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.http.server.framing import FramedRequest, Malformed, ParserSettings
    from fleetcast.http.server.holding import Holding
    from fleetcast.http.server.limits import ConnectionLimits

_PEEK_BYTES = 16_384
_DISCARD_BYTES = 65_536
_PARTS_MAX = 64  # of an answer in one call; the kernel takes no more than 1,024
_INT = struct.Struct("i")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Phase(enum.Enum):
    """What a connection is doing."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    BUSY = enum.auto()
    SEND = enum.auto()
    SKIP = enum.auto()
    LINGER = enum.auto()


class Step(enum.Enum):
    """What a connection needs next."""

    READ = enum.auto()
    WRITE = enum.auto()
    SERVE = enum.auto()
    CLOSE = enum.auto()


class Connection:
    """State of one accepted socket. `deadline` is a `time.monotonic` instant in seconds."""

    def __init__(
        self,
        sock: socket.socket,
        peer: object,
        settings: ParserSettings,
        limits: Callable[[], ConnectionLimits],
        malformed: Callable[[object, Malformed], None],
        now: float,
    ) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.peer = peer
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self.phase = Phase.IDLE
        self._limits = limits()
        self.deadline = now + self._limits.idle_seconds
        self.request: FramedRequest | None = None
        self.body = b""
        self.body_due = False
        """The body is not read, and the application has not said that it wants it."""
        self.admitted = False
        """It has; the body is the rest of a request that was counted already."""
        self.owner = ""
        self.lane = Lane("")
        self.over_share = False
        self.queued_at = 0.0
        """Whom the request counts for, its lane, that it is one too many, since when it waits."""
        self.body_held: Holding | None = None
        self.unsent_held: Holding | None = None
        self.taken_at = 0.0
        """When the client last took something of an answer."""
        self._settings = settings
        self._limits_now = limits
        self._malformed = malformed
        self._held = bytearray()
        self._partial = bytearray()
        self._filled = 0
        self._low_water = 1
        self._unsent: list[bytes | memoryview] = []
        self._unread = 0
        self._keep = False
        self._answered_at = 0.0
        self._sent_bytes = 0

    def advance(self, now: float) -> Step:
        """Does what the socket allows at once. Raises `OSError` where the peer is gone."""
        try:
            match self.phase:
                case Phase.IDLE | Phase.HEAD:
                    return self._read_head(now)
                case Phase.BODY:
                    return self._read_body()
                case Phase.SEND:
                    return self._send(now)
                case _:
                    return self._discard(now)
        except BlockingIOError:
            return Step.WRITE if self.phase is Phase.SEND else Step.READ

    def answer(self, parts: list[bytes], *, keep: bool, now: float) -> Step:
        """Sends a whole response: as much as the socket takes now, the rest from the loop.

        Raises `OSError` where the peer is gone.
        """
        self._unsent = [part for part in parts if part]
        self._keep = keep
        if self.body_due:
            assert self.request is not None  # noqa: S101 - a body is due only after a head
            self._unread = self.request.body_bytes
        self.forget_request()
        self.phase = Phase.SEND
        self.taken_at = self._answered_at = now
        self._sent_bytes = 0
        self.deadline = now + self._limits.answer_seconds
        return self.advance(now)

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken of an answer."""
        return sum(map(len, self._unsent))

    def take_body(self) -> None:
        """Reads a body that is due, if the whole of it has come. Raises `OSError`."""
        if not self.body_due:
            return
        assert self.request is not None  # noqa: S101 - a body is due only after a head
        come = bytearray(_INT.size)
        fcntl.ioctl(self.fd, termios.FIONREAD, come)
        if _INT.unpack(come)[0] >= self.request.body_bytes:
            self.body = self.sock.recv(self.request.body_bytes)
            self.body_due = False

    def await_body(self, now: float) -> Step:
        """Receives the body that is due. Raises `OSError` where the peer is gone."""
        assert self.request is not None  # noqa: S101 - a body is due only after a head
        self.body_due = False
        self.admitted = True
        self.phase = Phase.BODY
        self.deadline = now + self._limits.request_deadline_seconds
        if self.request.head.expects_continue:
            self.sock.send(_CONTINUE)
        # The kernel wakes the loop once, when the whole body is there (or the peer is gone, or no
        # more fits); one read then gives `bytes` without a copy.
        self._wake_at(self.request.body_bytes)
        return Step.READ

    def forget_request(self) -> None:
        """Lets go of the request, and of its part of what is shared."""
        self.request = None
        self.body = b""
        self.body_due = self.admitted = self.over_share = False
        if self.body_held is not None:
            self.body_held.give_all()
            self.body_held = None

    def close(self) -> None:
        """Closes the socket, and lets go of everything."""
        self.sock.close()
        self.forget_request()
        if self.unsent_held is not None:
            self.unsent_held.give_all()
            self.unsent_held = None

    def _read_head(self, now: float) -> Step:
        peeked = self.sock.recv(_PEEK_BYTES, socket.MSG_PEEK)
        if not peeked:
            return Step.CLOSE
        if self.phase is Phase.IDLE:
            self.phase = Phase.HEAD
            self._limits = self._limits_now()
            self.deadline = now + self._limits.read_deadline_seconds
        taken = framing.head_bytes(self._held, peeked)
        self._held += self.sock.recv(taken)
        try:
            request = framing.parse(self._settings, self._held, self._limits)
        except framing.Malformed as error:
            self._held.clear()
            self._malformed(self.peer, error)
            return self.answer([error.answer], keep=False, now=now)
        if request is None:
            return Step.READ
        self._held.clear()
        self.request = request
        if not request.buffered:
            self._unread = request.body_bytes
        elif len(peeked) - taken >= request.body_bytes:
            self.body = self.sock.recv(request.body_bytes)
        else:  # the application is asked first: a body is received for those alone who may send one
            self.body_due = True
        return self._serve()

    def _read_body(self) -> Step:
        assert self.request is not None  # noqa: S101 - there is a body only after a head
        wanted = self.request.body_bytes
        if not self._partial:
            body = self.sock.recv(wanted)
            if not body or len(body) == wanted:
                return self._complete(body)
            self._partial = bytearray(wanted)
            self._partial[: len(body)] = body
            self._filled = len(body)
        else:
            count = self.sock.recv_into(memoryview(self._partial)[self._filled :])
            self._filled += count
            if count == 0 or self._filled == wanted:
                return self._complete(bytes(memoryview(self._partial)[: self._filled]))
        self._wake_at(wanted - self._filled)
        return Step.READ

    def _complete(self, body: bytes) -> Step:
        self._partial = bytearray()
        self._wake_at(1)
        self.body = body
        return self._serve()

    def _serve(self) -> Step:
        self.phase = Phase.BUSY
        self.deadline = math.inf
        return Step.SERVE

    def _wake_at(self, count: int) -> None:
        if count != self._low_water:
            self._low_water = count
            with contextlib.suppress(OSError):  # without it the loop only wakes more often
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def _send(self, now: float) -> Step:
        while self._unsent:
            sent = self.sock.sendmsg(self._unsent[:_PARTS_MAX])
            self._note_taken(sent, now)
            while self._unsent and sent >= len(self._unsent[0]):
                sent -= len(self._unsent.pop(0))
            if self._unsent:
                self._unsent[0] = memoryview(self._unsent[0])[sent:]
        if not self._keep:
            return self._linger(now)
        if self._unread:
            self.phase = Phase.SKIP
            self.deadline = now + self._limits.unread_body_seconds
            return self._discard(now)
        return self._rest(now)

    def _note_taken(self, count: int, now: float) -> None:
        self.taken_at = now
        self._sent_bytes += count
        slowest_seconds = self._sent_bytes / self._limits.answer_bytes_per_second_min
        # The kernel takes some megabytes at once, so the slowest rate alone would be generous.
        self.deadline = min(now, self._answered_at + slowest_seconds) + self._limits.answer_seconds
        if self.unsent_held is not None:
            self.unsent_held.give(count)

    def _linger(self, now: float) -> Step:
        # Closing with unread input would reset the connection under the answer.
        self.sock.shutdown(socket.SHUT_WR)
        self.phase = Phase.LINGER
        self.deadline = now + self._limits.drain_seconds
        self._unread = self._limits.drain_bytes_max
        return self._discard(now)

    def _discard(self, now: float) -> Step:
        while self._unread:
            count = len(self.sock.recv(min(self._unread, _DISCARD_BYTES)))
            if count == 0:
                return Step.CLOSE
            self._unread -= count
        return Step.CLOSE if self.phase is Phase.LINGER else self._rest(now)

    def _rest(self, now: float) -> Step:
        self.phase = Phase.IDLE
        self.deadline = now + self._limits.idle_seconds
        return Step.READ
