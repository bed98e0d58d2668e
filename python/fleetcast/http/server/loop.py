"""The event loop of a worker: accepts, lets connections advance, ends those out of time.

Every socket is armed for one event at a time (`EPOLLONESHOT`), so a connection has one owner at
any moment: the loop, or the thread that serves it. A thread arms the socket itself when it has
answered; only a socket to be closed goes back to the loop.

All workers wait on the same listener, and whoever comes first takes a connection. So that a few
warm connections do not all end with one worker, a worker that has some already leaves a new one to
the others for as many milliseconds. Many connections spread by chance.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from fleetcast.http.server.connection import Connection, Phase, Step

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from fleetcast.http.server.framing import Malformed, ParserSettings
    from fleetcast.http.server.limits import ConnectionLimits
    from fleetcast.http.server.request_queue import RequestQueue

logger = logging.getLogger(__name__)

_TURN_SECONDS_MAX = 1.0  # gunicorn's heartbeat, and how late a deadline may be noticed
_EVENTS_MAX = 16  # of a turn: with more, the first request would wait long for the last
_POLITE_CONNECTIONS_MAX = 8  # with more than these a worker stops waiting for others
_POLITE_SECONDS = 0.001  # for each connection that it has
_READABLE = select.EPOLLIN | select.EPOLLONESHOT
_WRITABLE = select.EPOLLOUT | select.EPOLLONESHOT
_INTERRUPTIBLE = frozenset({Phase.IDLE, Phase.HEAD, Phase.BODY, Phase.SKIP, Phase.LINGER})


class Loop:
    """Owns every socket of one worker.

    Each connection with a whole request waits in `requests` from the end of a turn on: the thread
    that takes it needs the interpreter, which the loop lets go of when it waits. `malformed` is
    handed the peer of each head that gets no further than the parser.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        settings: ParserSettings,
        limits: Callable[[], ConnectionLimits],
        requests: RequestQueue,
        malformed: Callable[[object, Malformed], None],
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._requests = requests
        self._lock = threading.Lock()
        self._malformed = malformed
        self._connections: dict[int, Connection] = {}
        self._addresses: dict[str, dict[Connection, None]] = {}
        self._whole: list[Connection] = []
        self._finished: deque[Connection] = deque()
        self._next_sweep = 0.0
        self._stopped_at = math.inf
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._wake, select.EPOLLIN)
        self._listeners = {listener.fileno(): listener for listener in listeners}
        for fd, listener in self._listeners.items():
            listener.settimeout(0.0)
            self._poll.register(fd, _READABLE)
        self._accept_at: dict[int, float] = {}

    def watch(self, fd: int) -> None:
        """Ends the current turn early when `fd`, a non-blocking pipe, has something to read."""
        self._poll.register(fd, select.EPOLLIN)

    def wake(self) -> None:
        """Ends the current turn early, from any thread."""
        os.eventfd_write(self._wake, 1)

    def turn(self) -> None:
        """Waits for events, one second at most, and handles them."""
        until = min(self._next_sweep, *self._accept_at.values(), math.inf)
        wait = min(max(until - time.monotonic(), 0.0), _TURN_SECONDS_MAX)
        for fd, _ in self._poll.poll(wait, _EVENTS_MAX):
            connection = self._connections.get(fd)
            if connection is not None:
                self._advance(connection)
            elif fd in self._listeners:
                self._accept_at[fd] = time.monotonic() + self._politeness_seconds()
            else:
                with contextlib.suppress(BlockingIOError):
                    os.read(fd, 4096)
        while self._finished:
            self._close(self._finished.popleft())
        now = time.monotonic()
        for fd in [fd for fd, due in self._accept_at.items() if due <= now]:
            del self._accept_at[fd]
            self._accept(self._listeners[fd])
            self._poll.modify(fd, _READABLE)
        if now >= self._next_sweep:
            self._sweep(now)
        for connection in self._whole:
            self._requests.put(connection)
        self._whole.clear()

    def proceed(self, connection: Connection, step: Step) -> None:
        """Takes a connection back from the thread that served it; called by that thread."""
        if step is Step.CLOSE:
            self._finished.append(connection)
            self.wake()
        else:
            self._arm(connection, step)

    def stop_accepting(self) -> None:
        """Takes the connections that already wait, then no more. Requests under way go on."""
        for fd, listener in self._listeners.items():
            while self._accept(listener):
                pass
            self._poll.unregister(fd)
            listener.close()
        self._listeners.clear()
        self._accept_at.clear()
        self._stopped_at = time.monotonic()
        self._next_sweep = 0.0

    def __len__(self) -> int:
        """Open connections."""
        return len(self._connections)

    def close(self) -> None:
        """Closes every socket, whatever it is doing."""
        for connection in list(self._connections.values()):
            self._close(connection)
        self._poll.close()
        os.close(self._wake)

    def _politeness_seconds(self) -> float:
        held = len(self._connections)
        return held * _POLITE_SECONDS if held <= _POLITE_CONNECTIONS_MAX else 0.0

    def _accept(self, listener: socket.socket) -> bool:
        try:
            sock, peer = listener.accept()
        except BlockingIOError:
            return False
        except OSError:  # the peer has gone again, or no descriptor is left
            self._make_room()
            return False
        sock.settimeout(0.0)
        now = time.monotonic()
        connection = Connection(sock, peer, self._settings, self._limits, self._malformed, now)
        self._connections[connection.fd] = connection
        self._addresses.setdefault(connection.address, {})[connection] = None
        self._poll.register(connection.fd, _READABLE)
        self._due(connection.deadline)
        if len(self._connections) > self._limits().connections_max:
            self._make_room()
        return True

    def _make_room(self) -> None:
        """Closes the oldest connection that is not being served, of the address with the most."""
        for same in sorted(self._addresses.values(), key=len, reverse=True):
            for connection in same:
                if connection.phase in _INTERRUPTIBLE:
                    self._close(connection)
                    return

    def _advance(self, connection: Connection) -> None:
        try:
            step = connection.advance(time.monotonic())
        except OSError:
            step = Step.CLOSE
        except Exception:
            # One connection must never take the others with it.
            logger.exception("a connection failed")
            step = Step.CLOSE
        if step is Step.SERVE:
            self._whole.append(connection)
        elif step is Step.CLOSE:
            self._close(connection)
        else:
            self._due(connection.deadline)
            self._arm(connection, step)

    def _arm(self, connection: Connection, step: Step) -> None:
        # A connection closed meanwhile needs no arming, and its number may be another's already.
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._connections.get(connection.fd) is not connection:
                return
            self._poll.modify(connection.fd, _WRITABLE if step is Step.WRITE else _READABLE)

    def _due(self, deadline: float) -> None:
        self._next_sweep = min(self._next_sweep, deadline)

    def _sweep(self, now: float) -> None:
        """Closes connections past their deadline.

        Threads set deadlines unseen by `_due`, so the next sweep is never far.
        """
        self._next_sweep = now + _TURN_SECONDS_MAX
        for connection in list(self._connections.values()):
            deadline = min(connection.deadline, self._stop_deadline(connection.phase))
            if deadline <= now:
                self._close(connection)
            else:
                self._due(deadline)
        for connection in self._requests.sweep(now, list(self._connections.values())):
            self._close(connection)

    def _stop_deadline(self, phase: Phase) -> float:
        if phase is Phase.IDLE:
            return self._stopped_at + self._limits().stop_idle_seconds
        if phase in {Phase.HEAD, Phase.BODY}:
            return self._stopped_at + self._limits().stop_request_seconds
        return math.inf

    def _close(self, connection: Connection) -> None:
        with self._lock:
            if self._connections.get(connection.fd) is not connection:
                return
            del self._connections[connection.fd]
            connection.close()
        same = self._addresses[connection.address]
        del same[connection]
        if not same:
            del self._addresses[connection.address]
