"""Sockets of the service, which outlive its child processes."""

from __future__ import annotations

import errno
import socket
import sys
import time

from fleetcast.config import Address, parse_address
from fleetcast.errors import OperatorError

_BACKLOG = 2048
_ORPHANS_SECONDS = 10.0  # children of a killed supervisor hold its ports for at most this long
_RETRY_SECONDS = 0.1
_DRAIN_SECONDS = 1.0
_DRAIN_LOOK_SECONDS = 0.01
_TCP_INFO_BYTES = 104
_UNACKED = slice(24, 28)


def listen(text: str, *, after_crash: bool) -> socket.socket:
    """Returns a listening socket on `HOST:PORT`.

    After a crash, orphans may hold the port, so the call tries again for as long as they may live.
    Raises `OperatorError`.
    """
    address = parse_address(text)
    until = time.monotonic() + (_ORPHANS_SECONDS if after_crash else 0.0)
    while True:
        try:
            return _listening(address)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            if not taken or time.monotonic() >= until:
                message = f"cannot listen on {address}: {error.strerror}"
                raise OperatorError(message) from None
        time.sleep(_RETRY_SECONDS)


def end_listening(listener: socket.socket) -> None:
    """Makes the kernel refuse new connections, once the waiting connections are taken.

    The wait ends after a second. Closing the socket would change nothing, because all processes
    that inherited the socket listen by it. Does nothing to a socket that does not listen.
    """
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return
    until = time.monotonic() + _DRAIN_SECONDS
    while _waiting(listener) and time.monotonic() < until:
        time.sleep(_DRAIN_LOOK_SECONDS)
    listener.shutdown(socket.SHUT_RDWR)


def bound_address(bound: socket.socket) -> Address:
    """The address of a bound socket, with the port that the kernel gave it."""
    return Address(*bound.getsockname()[:2])


def _waiting(listener: socket.socket) -> int:
    """Number of connections that are not accepted yet: `tcpi_unacked` of linux/tcp.h."""
    info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    return int.from_bytes(info[_UNACKED], sys.byteorder)


def _listening(address: Address) -> socket.socket:
    listener = _bound(address)
    try:
        # If it did not listen at once, a second process could bind the same port.
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _bound(address: Address) -> socket.socket:
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, socket_address = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(socket_address)
    except BaseException:
        bound.close()
        raise
    return bound
