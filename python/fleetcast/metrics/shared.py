"""Counters that outlive the process that counts, whichever way it ends.

The supervisor makes one piece of anonymous shared memory and passes its descriptor on. It is cut
into rows of slots; a slot is a number of 8 bytes and its name. Every process that counts owns one
row and nobody else writes there, so nothing needs an atomic operation. A row belongs to whoever
holds the lock on its byte of the descriptor. The kernel lets go of the lock when a process ends, by
kill -9 too, and the next process takes the row over and goes on from its numbers. So sums over all
rows never fall while the supervisor lives, and there are never more rows than processes at once.

    slot: value u64 | length of the name u32, kind u32 | name, 240 bytes

A name is written before its length, and a slot without a length is free: what a process left half
done when it was killed is not there.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOT_BYTES = 256
NAME_BYTES_MAX = 240
ROW_SLOTS = 16_384
ROW_BYTES = ROW_SLOTS * SLOT_BYTES
ROWS = 512  # address space only: memory is taken by the slots in use
GAUGE = 1

_WORDS = SLOT_BYTES // 8
_HEAD_BYTES = 16
_HEAD = struct.Struct("=QII")


def make_shared_memory(rows: int = ROWS) -> int:
    """A descriptor of fresh shared memory, to be passed on to every process that counts."""
    descriptor = os.memfd_create("fleetcast-counters")
    os.ftruncate(descriptor, rows * ROW_BYTES)
    return descriptor


class Shared:
    """The rows behind a descriptor, for reading. Keep one for the life of a process.

    Closing it would let go of the lock on the row that this process owns.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self.words = memoryview(self.memory).cast("Q")
        self.rows = len(self.memory) // ROW_BYTES
        self.own: int | None = None

    def totals(self) -> Counter[str]:
        """Every name and its sum; gauges of processes that are gone do not count."""
        totals: Counter[str] = Counter()
        for row in range(self.rows):
            # Reading a page through the mapping would take memory for it.
            if not any(os.pread(self.descriptor, _HEAD_BYTES, row * ROW_BYTES)):
                continue
            alive = self._is_owned(row)
            for name, place, kind in self.slots(row):
                if alive or kind != GAUGE:
                    totals[name] += self.words[place]
        return totals

    def total(self, name: str) -> int:
        """The sum of one counter; 0 where nobody has counted it."""
        return self.totals()[name]

    def slots(self, row: int) -> Iterator[tuple[str, int, int]]:
        """Name, index of the value in `words`, and kind of every slot in use."""
        start = row * ROW_BYTES
        for offset in range(start, start + ROW_BYTES, SLOT_BYTES):
            _, length, kind = _HEAD.unpack_from(self.memory, offset)
            if not 0 < length <= NAME_BYTES_MAX:
                return
            name = self.memory[offset + _HEAD_BYTES : offset + _HEAD_BYTES + length]
            yield name.decode(errors="replace"), offset // 8, kind

    def _is_owned(self, row: int) -> bool:
        if row == self.own:
            return True
        if not _lock(self.descriptor, row):
            return True
        fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, row)
        return False


class Row:
    """The row of this process: take it after a fork, never before. Safe to share between threads.

    `values[place] += n` is for callers that hold `lock`.
    """

    def __init__(self, shared: Shared) -> None:
        number = next((row for row in range(shared.rows) if _lock(shared.descriptor, row)), None)
        if number is None:
            message = f"more than {shared.rows} processes count"
            raise RuntimeError(message)
        shared.own = number
        self.lock = threading.Lock()
        self.values = shared.words
        self._memory = shared.memory
        self._start = number * ROW_BYTES
        self._places: dict[str, int] = {}
        for name, place, kind in shared.slots(number):
            self._places[name] = place
            if kind == GAUGE:
                self.values[place] = 0

    def place(self, name: str, kind: int = 0) -> int:
        """Index of a name's value, made on first use; a full row counts the rest nowhere."""
        with self.lock:
            place = self._places.get(name)
            if place is None:
                place = self._places[name] = self._made(name.encode()[:NAME_BYTES_MAX], kind)
            return place

    def _made(self, name: bytes, kind: int) -> int:
        # The last slot is nameless: readers stop before it.
        slot = min(len(self._places), ROW_SLOTS - 1)
        offset = self._start + slot * SLOT_BYTES
        if slot < ROW_SLOTS - 1:
            begin = offset + _HEAD_BYTES
            self._memory[begin : begin + len(name)] = name
            self.values[offset // 8] = 0
            self.values[offset // 8 + 1] = len(name) | kind << 32
        return offset // 8


def _lock(descriptor: int, row: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, row)
    except OSError:
        return False
    return True
