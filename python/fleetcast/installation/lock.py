"""Exclusive lock of a data directory, held by its one `serve`, with a note about the service.

The first line of the file has the holder's process id, the second line has a JSON document. A clean
end empties the file. If the file has text and its lock is free, the last holder crashed.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_NOTE_BYTES_MAX = 65_536
_PATIENCE_SECONDS = 0.5  # `seen` holds the file for microseconds
_RETRY_SECONDS = 0.01


class HeldLock:
    """A lock that this process holds."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.crashed = bool(os.pread(descriptor, 1, 0))
        """True if the last holder ended without releasing the lock."""
        self.note({})

    def note(self, document: Mapping[str, object]) -> None:
        """Writes a document for `seen`. Raises `OSError`."""
        content = f"{os.getpid()}\n{json.dumps(document)}\n".encode()
        # The new text overwrites the old, so that a full disk has room for it.
        os.pwrite(self._descriptor, content, 0)
        os.ftruncate(self._descriptor, len(content))

    def clear(self) -> None:
        """Removes the document. Raises `OSError`."""
        os.ftruncate(self._descriptor, 0)


class Seen(NamedTuple):
    """State of a lock."""

    held: bool
    pid: int | None
    """Process that holds the lock or, if the lock is free, that crashed with it."""
    note: dict[str, object]


@contextmanager
def exclusive(path: Path) -> Iterator[HeldLock]:
    """Holds the lock.

    Raises `OperatorError` if another process holds it. The lock ends with the process.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _taken(descriptor):
            pid, _ = _content(descriptor)
            message = f"{path.parent} is being served already (process {pid or 'unknown'})"
            raise OperatorError(message)
        lock = HeldLock(descriptor)
        try:
            yield lock
        except OperatorError:  # the start was refused; no child is left
            lock.clear()
            raise
        lock.clear()
    finally:
        os.close(descriptor)


def seen(path: Path) -> Seen:
    """Reads the state of a lock without waiting for its holder. Raises `OSError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Seen(held=False, pid=None, note={})
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            held = False
        except BlockingIOError:
            held = True
        return Seen(held, *_content(descriptor))
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_RETRY_SECONDS)
        else:
            return True


def _content(descriptor: int) -> tuple[int | None, dict[str, object]]:
    """Returns process and note. A note that is half written or malformed counts as empty."""
    pid, note, *_ = [*os.pread(descriptor, _NOTE_BYTES_MAX, 0).split(b"\n"), b""]
    try:
        document = json.loads(note)
    except ValueError:
        document = {}
    number = int(pid) if pid.isdigit() else None
    return number, document if isinstance(document, dict) else {}


@contextmanager
def held(path: Path, busy: str, *, shared: bool = False) -> Iterator[None]:
    """Holds the lock of a folder, or of a file that is made and stays.

    Raises `OperatorError` with `busy` if another process has the lock. The lock ends with the
    process.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(busy) from None
        yield
    finally:
        os.close(descriptor)
