"""Sums over all rows of the shared memory, without reading a name twice.

A slot never changes its name, and slots are only added. So a reader remembers the indexes of each
name, and reads only the names of added slots.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from fleetcast.metrics.shared import GAUGE

if TYPE_CHECKING:
    from fleetcast.metrics.shared import Shared


class Totals:
    """Sums of the names that begin with `prefix`. Safe to share between threads."""

    def __init__(self, shared: Shared, prefix: str = "") -> None:
        self._shared = shared
        self._prefix = prefix
        self._lock = threading.Lock()
        self._slots_read: list[int] = []
        self._counters: dict[str, tuple[int, ...]] = {}
        self._gauges: dict[str, tuple[tuple[int, int], ...]] = {}

    def of(self, name: str) -> int:
        """Returns the sum of one name, or 0 if no process has counted it."""
        with self._lock:
            self._read_new_names()
            words = self._shared.words
            total = sum([words[index] for index in self._counters.get(name, ())])
            for row, index in self._gauges.get(name, ()):
                if self._shared.is_owned(row):
                    total += words[index]
            return total

    def all(self) -> Counter[str]:
        """Returns all names and their sums. Gauges of processes that are gone do not count."""
        with self._lock:
            self._read_new_names()
            words = self._shared.words
            totals = Counter(
                {
                    name: words[indexes[0]]
                    if len(indexes) == 1
                    else sum([words[index] for index in indexes])
                    for name, indexes in self._counters.items()
                }
            )
            owned = {
                row
                for row in {row for indexes in self._gauges.values() for row, _ in indexes}
                if self._shared.is_owned(row)
            }
            for name, indexes in self._gauges.items():
                living = [words[index] for row, index in indexes if row in owned]
                if living:
                    totals[name] += sum(living)
            return totals

    def _read_new_names(self) -> None:
        missing = self._shared.rows_taken - len(self._slots_read)
        self._slots_read += [0] * missing
        for row, read in enumerate(self._slots_read):
            for name, index, kind in self._shared.slots(row, read):
                self._slots_read[row] += 1
                if not name.startswith(self._prefix):
                    continue
                if kind == GAUGE:
                    self._gauges[name] = (*self._gauges.get(name, ()), (row, index))
                else:
                    self._counters[name] = (*self._counters.get(name, ()), index)
