"""Batches that wait to be sent: the oldest ones in memory, the rest on disk, in order.

On disk a batch is a file named by its number. What is there when the program starts is older than
anything new, so it goes first. A file is there whole or not at all while the machine runs; it is
not synced, so a power cut may take the last ones.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIX = ".batch"


class SpoolFull(Exception):
    """There is no room for another batch: the server has been away for too long."""


class Batch(NamedTuple):
    """A `WriteRequest` and its place in the order."""

    number: int
    request: bytes


class Spool:
    """A queue of batches. Not safe to share between threads: its owner has a lock."""

    def __init__(self, folder: Path | None, *, memory_bytes_max: int, disk_bytes_max: int) -> None:
        self._folder = folder
        self._memory: deque[Batch] = deque()
        self._memory_bytes = 0
        self._memory_bytes_max = memory_bytes_max
        self._disk: deque[tuple[int, int]] = deque()
        self._disk_bytes = 0
        self._disk_bytes_max = disk_bytes_max
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            numbers = sorted(int(path.stem) for path in folder.glob(f"*{_SUFFIX}"))
            self._disk.extend((number, self._path(number).stat().st_size) for number in numbers)
            self._disk_bytes = sum(size for _, size in self._disk)
        self._next = self._disk[-1][0] + 1 if self._disk else 1

    def __len__(self) -> int:
        return len(self._memory) + len(self._disk)

    def add(self, request: bytes) -> None:
        """Takes a batch as the newest. Raises `SpoolFull`, `OSError`, and has not taken it."""
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
        """The oldest batch, which stays. Raises `OSError`."""
        if self._memory:
            return self._memory[0]
        if self._disk:
            number, _ = self._disk[0]
            return Batch(number, self._path(number).read_bytes())
        return None

    def drop_first(self) -> None:
        """Forgets the oldest batch."""
        if self._memory:
            self._memory_bytes -= len(self._memory.popleft().request)
        else:
            number, size = self._disk.popleft()
            self._disk_bytes -= size
            self._path(number).unlink(missing_ok=True)

    def keep(self) -> int:
        """Puts what is in memory on disk, before the rest; how many could not be kept."""
        if self._folder is None:
            return len(self._memory)
        while self._memory:
            batch = self._memory.pop()
            self._store(batch.number, batch.request)
            self._disk.appendleft((batch.number, len(batch.request)))
        self._memory_bytes = 0
        return 0

    def _store(self, number: int, request: bytes) -> None:
        path = self._path(number)
        staged = path.with_suffix(".new")
        staged.write_bytes(request)
        staged.replace(path)

    def _path(self, number: int) -> Path:
        assert self._folder is not None  # noqa: S101  only batches on disk have a path
        return self._folder / f"{number:020}{_SUFFIX}"
