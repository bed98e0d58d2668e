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
    from collections.abc import Iterator
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
        yield crashed
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def listen(text: str, *, after_crash: bool) -> socket.socket:
    """A listening socket on `HOST:PORT`.

    After a crash the orphans may hold the port still, so it is tried for as long as they may
    live. Raises `OperatorError`.
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


def bound_address(listener: socket.socket) -> Address:
    """Where a socket listens, the port it was given included."""
    return Address(*listener.getsockname()[:2])


def _listening(address: Address) -> socket.socket:
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        # Without listening at once, a second process could bind the same port.
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
