"""Sockets of the service, which outlive its child processes."""

from __future__ import annotations

import errno
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from fleetcast.config import Address, parse_address
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_BACKLOG = 2048
_ORPHANS_SECONDS = 10.0  # children of a killed supervisor hold its ports for at most this long
_RETRY_SECONDS = 0.1
_DRAIN_SECONDS = 1.0
_DRAIN_LOOK_SECONDS = 0.01
_TCP_INFO_BYTES = 104
_UNACKED = slice(24, 28)


class InheritedSocket(socket.socket):
    """A listening socket of the service manager, which listens by it before and after this run."""


def listen(
    text: str, inherited: MutableMapping[Address, InheritedSocket], *, after_crash: bool
) -> socket.socket:
    """Returns a listening socket on `HOST:PORT`, which is taken from `inherited` if it is there.

    After a crash, orphans may hold the port, so the call tries again for as long as they may live.
    Raises `OperatorError`.
    """
    address = parse_address(text)
    until = time.monotonic() + (_ORPHANS_SECONDS if after_crash else 0.0)
    while True:
        try:
            found = _found(address)
            return inherited.pop(Address(*found[-1][:2]), None) or _listening(found)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            if not taken or time.monotonic() >= until:
                message = f"cannot listen on {address}: {error.strerror}"
                raise OperatorError(message) from None
        time.sleep(_RETRY_SECONDS)


def end_listening(listener: socket.socket) -> None:
    """Makes the kernel refuse new connections, once the waiting connections are taken.

    The wait ends after a second. Closing the socket would change nothing, because all processes
    that inherited the socket listen by it. Does nothing to a socket that does not listen, nor to
    the manager's socket, whose waiting connections the next run takes.
    """
    if isinstance(listener, InheritedSocket):
        return
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


def _found(address: Address) -> tuple[Any, ...]:
    """Returns family, kind, protocol, name and socket address. Raises `OSError`."""
    flags = socket.AI_PASSIVE
    return socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=flags)[0]


def _listening(found: tuple[Any, ...]) -> socket.socket:
    listener = _bound(*found)
    try:
        # If it did not listen at once, a second process could bind the same port.
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _bound(
    family: int, kind: int, protocol: int, _name: str, socket_address: tuple[Any, ...]
) -> socket.socket:
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(socket_address)
    except BaseException:
        bound.close()
        raise
    return bound
