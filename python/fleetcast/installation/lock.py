"""Exclusive lock of a data directory, held by the one `serve` of it."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Holds the lock; gives true where its last holder ended without letting go of it.

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


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
