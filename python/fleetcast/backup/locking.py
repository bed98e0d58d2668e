"""Locks of a backup or a restore under way. Each tells other commands that it is not done yet."""

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
def held(path: Path, busy: str) -> Iterator[None]:
    """Makes a file and holds its lock.

    Raises `OperatorError` with `busy` if another process has the lock. The lock ends with the
    process; the file stays.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(busy) from None
        yield
    finally:
        os.close(descriptor)
