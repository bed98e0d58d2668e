"""Counters that outlive the process that counts, however the process ends.

The supervisor makes one piece of anonymous shared memory and passes its descriptor on. The memory
is cut into rows of slots. A slot is a number of 8 bytes and its name. Every process that counts
owns a row, and takes another row when its names no longer fit. No other process writes to the row,
so no atomic operations are needed.

The owner of a row holds the lock on the row's byte of the descriptor. The kernel releases the lock
when a process ends, by kill -9 too. The next process takes the row over and goes on from its
numbers. So sums over all rows never fall while the supervisor lives, and there are never more rows
than the processes of one moment needed. Example: 8 workers that are restarted 100 times use 8 rows.

    slot: value u64 | length of the name u32, kind u32 | name, 240 bytes

A name is written before its length, and a slot without a length is free. So a slot that a killed
process had only half written does not count. After the rows lies the number of rows ever taken, a
u64.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOT_BYTES = 256
NAME_BYTES_MAX = 240
ROW_SLOTS = 16_384
ROW_BYTES = ROW_SLOTS * SLOT_BYTES
ROWS = 512  # address space only: the slots in use take memory
GAUGE = 1
KEYED = 2
KEYED_MAX = 1_000
"""Bound on the names of kind `KEYED` of one process. Names beyond the bound share `KEYED_REST`."""
KEYED_REST = "keyed rest"
LOST = "fleetcast_series_lost_total"
"""Counts the names for which no row had room."""

_HEAD_BYTES = 16
_HEAD = struct.Struct("=QII")
_TAIL_BYTES = mmap.PAGESIZE


def make_shared_memory(rows: int = ROWS) -> int:
    """Returns a descriptor of new shared memory, to be passed on to every process that counts."""
    descriptor = os.memfd_create("fleetcast-counters")
    os.ftruncate(descriptor, rows * ROW_BYTES + _TAIL_BYTES)
    return descriptor


class Shared:
    """The rows of shared memory. Keep one object for the life of a process.

    Closing the descriptor would release the locks on the rows that this process owns.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self.words = memoryview(self.memory).cast("Q")
        self.rows = len(self.memory) // ROW_BYTES
        self.rows_bytes = self.rows * ROW_BYTES
        self.own: set[int] = set()

    @property
    def rows_taken(self) -> int:
        """Rows that may hold counters: all rows up to the last row ever taken."""
        return self.words[self.rows_bytes // 8]

    def slots(self, row: int, first: int = 0) -> Iterator[tuple[str, int, int]]:
        """Yields name, index of the value in `words`, and kind of used slots from `first` on."""
        start = row * ROW_BYTES
        for offset in range(start + first * SLOT_BYTES, start + ROW_BYTES, SLOT_BYTES):
            _, length, kind = _HEAD.unpack_from(self.memory, offset)
            if not 0 < length <= NAME_BYTES_MAX:
                return
            name = self.memory[offset + _HEAD_BYTES : offset + _HEAD_BYTES + length]
            yield name.decode(errors="replace"), offset // 8, kind

    def is_owned(self, row: int) -> bool:
        """Returns true while a living process counts in the row."""
        if row in self.own:
            return True
        if not _lock(self.descriptor, row):
            return True
        fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, row)
        return False

    def take(self) -> int | None:
        """Takes a free row, which this process owns from now on; `None` if no row is free."""
        for row in range(self.rows):
            if row not in self.own and _lock(self.descriptor, row):
                self.own.add(row)
                self._note_taken(row)
                return row
        return None

    def _note_taken(self, row: int) -> None:
        """Raises the number of rows taken, one process at a time."""
        fcntl.lockf(self.descriptor, fcntl.LOCK_EX, 1, self.rows)
        try:
            index = self.rows_bytes // 8
            self.words[index] = max(self.words[index], row + 1)
        finally:
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, self.rows)


class Row:
    """The rows of this process. Take them after a fork, never before. Safe between threads.

    Hold `lock` for `values[index] += n`.
    """

    def __init__(self, shared: Shared) -> None:
        self.lock = threading.Lock()
        self.values = shared.words
        self._shared = shared
        self._indexes: dict[str, int] = {}
        self._keyed = 0
        if not self._extend():
            message = f"more than {shared.rows} processes count"
            raise RuntimeError(message)

    def index(self, name: str, kind: int = 0) -> int:
        """Index of a name's value, made on first use. Names without room share one slot."""
        with self.lock:
            index = self._indexes.get(name)
            if index is None and kind == KEYED and self._keyed >= KEYED_MAX:
                name, kind = KEYED_REST, 0
                index = self._indexes.get(name)
            if index is None:
                index = self._indexes[name] = self._find_room(name.encode()[:NAME_BYTES_MAX], kind)
            return index

    def _extend(self) -> bool:
        """Takes a row, with the names of its previous process; returns false if no row is free."""
        number = self._shared.take()
        if number is None:
            return False
        self._start = number * ROW_BYTES
        self._used = 0
        for name, index, kind in self._shared.slots(number):
            self._indexes.setdefault(name, index)
            self._used += 1
            self._keyed += kind == KEYED
            if kind == GAUGE:
                self.values[index] = 0
        return True

    def _find_room(self, name: bytes, kind: int) -> int:
        # The last slot is nameless: readers stop before it. The slot before it is for `LOST`.
        while self._used >= ROW_SLOTS - 2:
            if not self._extend():
                return self._lost()
        return self._make(name, kind)

    def _lost(self) -> int:
        """Counts one more lost name, and returns the index of the slot without a name."""
        lost = self._indexes.get(LOST)
        if lost is None:
            lost = self._indexes[LOST] = self._make(LOST.encode(), 0)
        self.values[lost] += 1
        return (self._start + (ROW_SLOTS - 1) * SLOT_BYTES) // 8

    def _make(self, name: bytes, kind: int) -> int:
        offset = self._start + self._used * SLOT_BYTES
        self._used += 1
        self._keyed += kind == KEYED
        begin = offset + _HEAD_BYTES
        self._shared.memory[begin : begin + len(name)] = name
        self.values[offset // 8] = 0
        self.values[offset // 8 + 1] = len(name) | kind << 32
        return offset // 8


def _lock(descriptor: int, row: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, row)
    except OSError:
        return False
    return True
