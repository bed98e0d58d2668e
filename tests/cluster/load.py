"""Writers on several nodes, of which each row is written once, and what became of each."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import polars as pl

from fleetcast.engine import encode_records
from fleetcast.errors import StoreUnreachable
from tests.waiting import until

from .figures import Figures, note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from concurrent.futures import Future

    from fleetcast.engine import Plane, Planes

KEY = bytes(32)
WRITERS = 2  # on each node
ROWS = 4  # of a batch
START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
EVER = (0, 2**63 - 1)
PAUSE_SECONDS = 0.02  # of a client that was refused


def _batch(number: int, writer: int) -> bytes:
    return encode_records(
        {
            "measurement": "link",
            "time": (START + timedelta(milliseconds=row)).isoformat(),
            "tags": {"entity_id": f"e{writer}"},
            "fields": {"n": float(row)},
        }
        for row in range(number * ROWS, (number + 1) * ROWS)
    )


def _rows_of(plane: Plane) -> Counter[int] | None:
    """Numbers of the rows, `None` if they cannot be read now.

    A read may join an attempt to connect that began before the servers were back.
    """
    try:
        return Counter(map(int, pl.DataFrame(plane.scan(*EVER))["n"].to_list()))
    except StoreUnreachable:
        return None


class Target(Protocol):
    """A node that takes writes: a handle of its own, or its address."""

    def write_json(self, body: bytes, /) -> object:
        """Writes it, or raises `StoreUnreachable`."""


class Load:
    """Writers on some nodes, and one who reads beside them through a handle of its own."""

    def __init__(self, targets: Sequence[Target], reader: Plane, others: Sequence[Plane]) -> None:
        self._targets, self._reader, self._others = targets, reader, others
        self.name = ""
        """Name of the plane, where it is one of its own."""
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._running: list[Future[None]] = []
        writers = WRITERS * len(targets)
        self.refused = [0] * writers
        self.refused_reads = 0
        self._acknowledged: list[list[tuple[int, float]]] = [[] for _ in range(writers)]
        self._unknown: list[int] = []
        self._behind: list[tuple[int, int]] = []

    @classmethod
    def on(cls, nodes: list[Planes]) -> Load:
        """Writers through handles of all nodes but the last, to a plane of their own."""
        name = str(uuid.uuid4())
        nodes[0].create(name, KEY)
        *targets, reader = [node.open(name, KEY, "acme") for node in nodes]
        load = cls(targets, reader, targets)
        load.name = name
        return load

    def _write(self, writer: int, target: Target) -> None:
        while not self._ended.is_set():
            number = next(self._numbers)
            try:
                target.write_json(_batch(number, writer))
            except StoreUnreachable:  # any other error ends the writer, and the test
                self._unknown.append(number)
                self.refused[writer] += 1
                self._ended.wait(PAUSE_SECONDS)
            else:
                self._acknowledged[writer].append((number, time.monotonic()))

    def _read(self) -> None:
        while not self._ended.is_set():
            acknowledged = ROWS * sum(map(len, self._acknowledged))
            try:
                found = self._reader.stats().stored_rows
            except StoreUnreachable:
                self.refused_reads += 1
                self._ended.wait(PAUSE_SECONDS)
            else:
                if found < acknowledged:
                    self._behind.append((acknowledged, found))

    @contextmanager
    def running(self) -> Iterator[Load]:
        """The same writers and the same handles from the first write to the last."""
        with ThreadPoolExecutor(len(self.refused) + 1) as pool:
            try:
                self._running = [pool.submit(self._read)]
                for writer in range(len(self.refused)):
                    target = self._targets[writer % len(self._targets)]
                    self._running.append(pool.submit(self._write, writer, target))
                yield self
            finally:
                self._ended.set()
        for each in self._running:
            each.result()

    def until(self, look: Callable[[], object]) -> None:
        """Waits for something that the writers bring about."""

        def seen() -> object:
            for each in self._running:
                if each.done():
                    each.result()
            return look()

        until(seen)

    def goes_on(self, batches: int, targets: Collection[int] | None = None) -> None:
        """Waits until each writer, or each to these targets, has so many more acknowledged."""
        before = [
            (each, len(each))
            for writer, each in enumerate(self._acknowledged)
            if targets is None or writer % len(self._targets) in targets
        ]
        self.until(lambda: all(len(each) >= count + batches for each, count in before))

    def refusals(self, targets: Collection[int]) -> int:
        """Writes to these targets that were refused."""
        count = len(self._targets)
        return sum(
            refused for writer, refused in enumerate(self.refused) if writer % count in targets
        )

    def is_read_by(self, plane: Plane) -> bool:
        """False for a read of all rows that is refused. Its answer lacks nothing acknowledged."""
        before = {number for each in self._acknowledged for number, _ in each}
        rows = _rows_of(plane)
        assert rows is None or before - {row // ROWS for row in rows} == set()
        return rows is not None

    def assert_kept(self, fault: str) -> None:
        """Nothing was lost or stored twice. Notes the figures of the fault, and prints them."""
        acknowledged = {number for each in self._acknowledged for number, _ in each}
        unknown = set(self._unknown)
        stored = set()
        for plane in (self._reader, *self._others):
            rows = until(lambda plane=plane: _rows_of(plane))
            assert [row for row, count in rows.items() if count > 1] == []  # stored twice
            batches = Counter(row // ROWS for row in rows)
            assert set(batches.values()) == {ROWS}  # whole or not at all
            assert acknowledged - batches.keys() == set()  # lost
            assert batches.keys() <= acknowledged | unknown
            assert plane.stats().stored_rows == len(rows)  # nothing is counted twice either
            stored = set(batches)
        assert self._behind == []  # a read that lacks what was acknowledged before it
        times = sorted(at for each in self._acknowledged for _, at in each)
        gap = max(after - before for before, after in itertools.pairwise(times))
        counts = (len(acknowledged), len(unknown), len(stored & unknown), self.refused_reads)
        found = Figures(1, *counts, gap)
        note(fault, found)
        print(f"\n{fault}: {found}")
