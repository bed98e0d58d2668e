"""Counters of one process: names that stand for indexes in its row of the shared memory."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from fleetcast.metrics.families import BUCKETS_SECONDS
from fleetcast.metrics.shared import GAUGE, KEYED, Row, Shared, make_shared_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def label(name: str, **labels: object) -> str:
    """Writes a series as Prometheus does. Example: `name{route="/topology",status="200"}`."""
    if not labels:
        return name
    pairs = (f'{key}="{str(value).translate(_ESCAPES)}"' for key, value in labels.items())
    return f"{name}{{{','.join(pairs)}}}"


class Counters:
    """The counters of this process. Threads may share them. Make them after a fork."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._row = Row(shared)

    @staticmethod
    def alone() -> Counters:
        """Makes counters that no other process sees."""
        return Counters(Shared(make_shared_memory(rows=1)))

    def counter(self, name: str) -> int:
        """Index of a series that only grows."""
        return self._row.index(name)

    def gauge(self, name: str) -> int:
        """Index of a series that goes up and down, and ends with this process."""
        return self._row.index(name, GAUGE)

    def keyed(self, name: str) -> int:
        """Index of a counter of one API key. `KEYED_MAX` bounds the number of such counters."""
        return self._row.index(name, KEYED)

    def add(self, index: int, amount: int = 1) -> None:
        """Adds to a counter, or to a gauge, which must not fall below 0."""
        row = self._row
        with row.lock:
            row.values[index] += amount

    def add_all(self, changes: Iterable[tuple[int, int]]) -> None:
        """Adds to several counters at once."""
        row = self._row
        with row.lock:
            values = row.values
            for index, amount in changes:
                values[index] += amount

    def put(self, index: int, value: int) -> None:
        """Sets a gauge that only one thread sets."""
        self._row.values[index] = value


class Histogram:
    """Durations of one kind, counted by upper bound."""

    def __init__(self, counters: Counters, name: str, **labels: object) -> None:
        bounds = [f"{bound:g}" for bound in BUCKETS_SECONDS] + ["+Inf"]
        self.buckets = [
            counters.counter(label(f"{name}_bucket", **labels, le=bound)) for bound in bounds
        ]
        """Index for each bound of `BUCKETS_SECONDS`, and one index for longer durations."""
        self.sum = counters.counter(label(f"{name}_sum", **labels))
        """Index of the sum in nanoseconds."""

    def changes(self, seconds: float) -> tuple[tuple[int, int], tuple[int, int]]:
        """Indexes and amounts that one observation adds, for `Counters.add_all`.

        Example: with bounds 0.1 and 0.25, a duration of 0.2 s adds 1 to the bucket of 0.25 and
        200,000,000 to the sum.
        """
        bucket = self.buckets[bisect_left(BUCKETS_SECONDS, seconds)]
        return (bucket, 1), (self.sum, int(seconds * 1e9))
