"""One client connection as a state machine, with a deadline for each state.

    IDLE -> HEAD -> BUSY -> SEND -> IDLE             the usual round
                    BUSY -> BODY -> BUSY             a body that is wanted and not there
                                    SEND -> SKIP     input that nobody reads, then IDLE
                                    SEND -> LINGER   input that nobody reads, then closed

Nothing here blocks. The loop advances a connection when its socket is ready; while it is BUSY it
belongs to one pool thread, which ends that with `answer` or `await_body`. Bytes that belong to the
next request stay in the kernel's buffer, so pipelined requests need no buffer of their own.
"""

from __future__ import annotations

import enum
import fcntl
import math
import socket
import struct
import termios
from typing import TYPE_CHECKING

from fleetcast.http.server import framing
from fleetcast.http.server.body_reader import BodyReader
from fleetcast.http.server.outgoing import Outgoing
from fleetcast.surface.fair_queue import Lane

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.http.server.framing import FramedRequest, Malformed, ParserSettings
    from fleetcast.http.server.holding import Holding
    from fleetcast.http.server.limits import ConnectionLimits

_PEEK_BYTES = 16_384
_DISCARD_BYTES = 65_536
_INT = struct.Struct("i")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Phase(enum.Enum):
    """Activity of a connection."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    BUSY = enum.auto()
    SEND = enum.auto()
    SKIP = enum.auto()
    LINGER = enum.auto()


class Step(enum.Enum):
    """Next need of a connection."""

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
        """The account or address that the request counts for."""
        self.lane = Lane("")
        self.over_share = False
        """The request is one too many of its owner."""
        self.queued_at = 0.0
        self.body_held: Holding | None = None
        self.unsent_held: Holding | None = None
        self.taken_at = 0.0
        """Instant at which the client last took something of an answer."""
        self._settings = settings
        self._limits_now = limits
        self._malformed = malformed
        self._held = bytearray()
        self._reader: BodyReader | None = None
        self._outgoing = Outgoing((), self._limits, now)
        self._unread_bytes = 0
        self._keep = False

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
        outgoing = self._outgoing = Outgoing(parts, self._limits, now)
        self._keep = keep
        if self.body_due:
            assert self.request is not None  # noqa: S101 - a body is due only after a head
            self._unread_bytes = self.request.body_bytes
        self.forget_request()
        self.phase = Phase.SEND
        self.taken_at = now
        self.deadline = outgoing.deadline
        return self.advance(now)

    @property
    def unsent_bytes(self) -> int:
        """Bytes of an answer that the client has not taken."""
        return self._outgoing.unsent_bytes

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
        self._reader = BodyReader(self.sock, self.request.body_bytes)
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
            self._unread_bytes = request.body_bytes
        elif len(peeked) - taken >= request.body_bytes:
            self.body = self.sock.recv(request.body_bytes)
        else:  # the application is asked first: a body is received for those alone who may send one
            self.body_due = True
        return self._serve()

    def _read_body(self) -> Step:
        assert self._reader is not None  # noqa: S101 - it is there as long as the phase lasts
        body = self._reader.read()
        if body is None:
            return Step.READ
        self._reader = None
        self.body = body
        return self._serve()

    def _serve(self) -> Step:
        self.phase = Phase.BUSY
        self.deadline = math.inf
        return Step.SERVE

    def _send(self, now: float) -> Step:
        outgoing = self._outgoing
        while outgoing.parts:
            sent = outgoing.send(self.sock, now)
            self.taken_at = now
            self.deadline = outgoing.deadline
            if self.unsent_held is not None:
                self.unsent_held.give(sent)
        if not self._keep:
            return self._linger(now)
        if self._unread_bytes:
            self.phase = Phase.SKIP
            self.deadline = now + self._limits.unread_body_seconds
            return self._discard(now)
        return self._rest(now)

    def _linger(self, now: float) -> Step:
        # Closing with unread input would reset the connection under the answer.
        self.sock.shutdown(socket.SHUT_WR)
        self.phase = Phase.LINGER
        self.deadline = now + self._limits.drain_seconds
        self._unread_bytes = self._limits.drain_bytes_max
        return self._discard(now)

    def _discard(self, now: float) -> Step:
        while self._unread_bytes:
            count = len(self.sock.recv(min(self._unread_bytes, _DISCARD_BYTES)))
            if count == 0:
                return Step.CLOSE
            self._unread_bytes -= count
        return Step.CLOSE if self.phase is Phase.LINGER else self._rest(now)

    def _rest(self, now: float) -> Step:
        self.phase = Phase.IDLE
        self.deadline = now + self._limits.idle_seconds
        return Step.READ
