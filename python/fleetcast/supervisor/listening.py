"""The exclusive lock of a data directory, and the sockets that outlive its child processes."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.config import Address, parse_address
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BACKLOG = 2048
_ORPHANS_SECONDS = 10.0  # children of a killed supervisor hold its ports for so long at most
_RETRY_SECONDS = 0.1


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Holds the lock; gives whether its last holder ended without letting go of it.

    Raises `OperatorError` where another process holds it. The lock ends with the process.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{path.parent} is being served already (process {_holder(descriptor)})"
            raise OperatorError(message) from None
        crashed = bool(os.pread(descriptor, 1, 0))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        try:
            yield crashed
        except OperatorError:  # the start was refused; no child is left
            os.ftruncate(descriptor, 0)
            raise
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def listen(text: str, *, after_crash: bool) -> socket.socket:
    """A listening socket on `HOST:PORT`. Raises `OperatorError`."""
    return _held(text, _listening, after_crash=after_crash)


def reserve(text: str, *, shared: bool, after_crash: bool) -> socket.socket:
    """A socket that holds `HOST:PORT` for children that listen there themselves.

    It never listens, so no connection comes to it. Who else listens on the port is found out;
    `shared` ones are opened so that several children can. Raises `OperatorError`.
    """
    return _held(text, lambda address: _reserved(address, shared=shared), after_crash=after_crash)


def _held(
    text: str, hold: Callable[[Address], socket.socket], *, after_crash: bool
) -> socket.socket:
    """After a crash the orphans may hold the port still: tried for as long as they may live."""
    address = parse_address(text)
    until = time.monotonic() + (_ORPHANS_SECONDS if after_crash else 0.0)
    while True:
        try:
            return hold(address)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            if not taken or time.monotonic() >= until:
                message = f"cannot listen on {address}: {error.strerror}"
                raise OperatorError(message) from None
        time.sleep(_RETRY_SECONDS)


def bound_address(listener: socket.socket) -> Address:
    """Where a socket listens, the port it was given included."""
    return Address(*listener.getsockname()[:2])


def _listening(address: Address) -> socket.socket:
    listener = _bound(address)
    try:
        # Without listening at once, a second process could bind the same port.
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _reserved(address: Address, *, shared: bool) -> socket.socket:
    # Not shared, the port is refused while anybody listens on it, whoever would share it.
    held = _bound(address)
    if shared:
        place = bound_address(held)
        held.close()
        held = _bound(place, share=True)
    return held


def _bound(address: Address, *, share: bool = False) -> socket.socket:
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(place)
    except BaseException:
        bound.close()
        raise
    return bound


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
