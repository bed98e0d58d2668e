"""Batches that wait to be sent, in order: the oldest batches in memory, the rest on disk.

Each batch on disk is a file named by its number. Files that a run before left are sent first. A
program that is killed leaves no half file. A power cut may lose the newest files, because files are
not synced. A file that cannot be read, or that holds no batch, is renamed and passed over.

Example: batch 7 is the file whose name is 7 with 20 digits.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.client.records import is_request

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIX = ".batch"
_UNREADABLE_SUFFIX = ".unreadable"

logger = logging.getLogger(__name__)


class SpoolFull(Exception):
    """The spool has no room for another batch, because the server has been away for too long."""


class SpoolInUse(Exception):
    """Another writer has the folder of the spool. Each writer needs its own folder."""


class Batch(NamedTuple):
    """A `WriteRequest` and its number in the order."""

    number: int
    request: bytes


class Spool:
    """A queue of batches. Not safe to share between threads: the writer guards it with a lock.

    Raises `SpoolInUse` if another spool has the folder, `OSError` if the folder cannot be used.
    """

    def __init__(self, folder: Path | None, *, memory_bytes_max: int, disk_bytes_max: int) -> None:
        self._folder = folder
        self._held: int | None = None
        self._memory: deque[Batch] = deque()
        self._memory_bytes = 0
        self._memory_bytes_max = memory_bytes_max
        self._disk: deque[tuple[int, int]] = deque()
        """Number and bytes of each batch on disk."""
        self._disk_bytes = 0
        self._disk_bytes_max = disk_bytes_max
        self.unreadable_count = 0
        """Files that this spool has set aside."""
        found: list[tuple[int, int]] = []
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = _locked(folder)
            try:
                self._disk.extend(_numbered(folder, _SUFFIX))
                # Files that were set aside use room of the spool until a person removes them.
                found = [*self._disk, *_numbered(folder, _UNREADABLE_SUFFIX)]
            except BaseException:
                self._let_go()
                raise
            self._disk_bytes = sum(size for _, size in found)
        self._next = max((number for number, _ in found), default=0) + 1

    def __len__(self) -> int:
        return len(self._memory) + len(self._disk)

    def add(self, request: bytes) -> None:
        """Adds the newest batch. Raises `SpoolFull`, `OSError`; the batch is not added then."""
        size = len(request)
        in_memory = not self._disk and self._memory_bytes + size <= self._memory_bytes_max
        if in_memory or not (self._memory or self._disk):
            self._memory.append(Batch(self._next, request))
            self._memory_bytes += size
        elif self._folder is not None and self._disk_bytes + size <= self._disk_bytes_max:
            self._store(self._next, request)
            self._disk.append((self._next, size))
            self._disk_bytes += size
        else:
            message = "the spool is full"
            raise SpoolFull(message)
        self._next += 1

    def first(self) -> Batch | None:
        """Returns the oldest batch that can be read, without removing it."""
        while not self._memory and self._disk:
            number, _ = self._disk[0]
            try:
                request = self._path(number).read_bytes()
                if is_request(request):
                    return Batch(number, request)
                problem = "it holds no batch"
            except OSError as error:
                problem = str(error)
            self._disk.popleft()
            self._set_aside(number, problem)
        return self._memory[0] if self._memory else None

    def shorten_first(self, request: bytes) -> None:
        """Replaces the oldest batch by its unsent rest.

        Raises `OSError`; the batch is then unchanged.
        """
        if self._memory:
            first = self._memory[0]
            self._memory[0] = first._replace(request=request)
            self._memory_bytes += len(request) - len(first.request)
        else:
            number, size = self._disk[0]
            self._store(number, request)
            self._disk[0] = (number, len(request))
            self._disk_bytes += len(request) - size

    def drop_first(self) -> None:
        """Removes the oldest batch."""
        if self._memory:
            self._memory_bytes -= len(self._memory.popleft().request)
        else:
            number, size = self._disk.popleft()
            self._disk_bytes -= size
            try:
                self._path(number).unlink(missing_ok=True)
            except OSError:
                logger.exception("a batch of the spool was sent, but cannot be removed")

    def close(self) -> int:
        """Writes the batches in memory to disk, before the newer batches, and unlocks the folder.

        Returns the number of batches that could not be kept.
        """
        while self._memory and self._folder is not None:
            batch = self._memory[-1]
            try:
                self._store(batch.number, batch.request)
            except OSError:
                logger.exception("the spool cannot be written")
                break
            self._memory.pop()
            self._memory_bytes -= len(batch.request)
            self._disk.appendleft((batch.number, len(batch.request)))
            self._disk_bytes += len(batch.request)
        self._let_go()
        return len(self._memory)

    def _let_go(self) -> None:
        if self._held is not None:
            # A forked process shares the descriptor, so closing it here would not release the lock.
            fcntl.flock(self._held, fcntl.LOCK_UN)
            os.close(self._held)
            self._held = None

    def _set_aside(self, number: int, problem: str) -> None:
        self.unreadable_count += 1
        path = self._path(number)
        try:
            path.rename(path.with_suffix(_UNREADABLE_SUFFIX))
        except OSError:  # passed over all the same; the next writer tries again
            logger.exception("a batch of the spool cannot be read (%s): %s", problem, path)
        else:
            logger.error(
                "a batch of the spool cannot be read (%s): it is set aside, %s", problem, path
            )

    def _store(self, number: int, request: bytes) -> None:
        path = self._path(number)
        staged = path.with_suffix(".new")
        staged.write_bytes(request)
        staged.replace(path)

    def _path(self, number: int) -> Path:
        assert self._folder is not None  # noqa: S101 - only batches on disk have a path
        return self._folder / f"{number:020}{_SUFFIX}"


def _locked(folder: Path) -> int:
    """Returns a locked descriptor of the folder. Raises `SpoolInUse`, `OSError`.

    The lock ends when it is released, or when all processes that have the descriptor have ended.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        message = f"another writer has the spool {folder}: give each writer a folder of its own"
        raise SpoolInUse(message) from None
    except OSError:
        os.close(held)
        raise
    return held


def _numbered(folder: Path, suffix: str) -> list[tuple[int, int]]:
    """Number and bytes of the files that a spool has named, in order."""
    sizes = {path.stem: path.stat().st_size for path in folder.glob(f"*{suffix}")}
    return sorted((int(name), size) for name, size in sizes.items() if name.isdecimal())
