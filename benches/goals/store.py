"""Figures of the store: entities never seen, many writers, what reaches the disk, compaction."""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import lmdb

from benches.goals.effort import MASTER_KEY, new_plane
from benches.goals.table import Line
from benches.harness.measure import alternate, cpu_seconds, written_bytes_of
from benches.harness.paths import DATA
from benches.inputs import fleet
from fleetcast._core import Plane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benches.goals.effort import Effort

WIDE_ENTITIES = 100_000
NARROW_ENTITIES = 100
SMALL_RECORDS = 10
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system that syncs for nothing
_META_TXN = 16 + 4 + 4 + 8 + 8 + 2 * 48 + 8  # mm_txnid behind a page's head, LMDB 0.9's lmdb.h
_PAGE = os.sysconf("SC_PAGESIZE")


def wide_lines() -> list[Line]:
    """A hundred thousand entities: the first time, again, and beside a hundred."""
    bodies = list(fleet.wide_bodies(WIDE_ENTITIES))
    rows = len(bodies) * fleet.BODY_RECORDS
    few = list(fleet.buffered_bodies(len(bodies)))
    wide, narrow = new_plane("seen-once"), new_plane("narrow")

    def per_second(plane: Plane, bodies: list[bytes]) -> float:
        return rows / cpu_seconds(lambda: [plane.write_json(body) for body in bodies])

    first = per_second(wide, bodies)
    per_second(narrow, few)
    rates = alternate(
        3, {"wide": lambda: per_second(wide, bodies), "narrow": lambda: per_second(narrow, few)}
    )
    return [
        Line.at_least(
            f"first sight of {WIDE_ENTITIES:,} entities, rows per CPU second",
            first, "the same rows again", rates["wide"], 0.5,
        ),
        Line.at_least(
            f"{WIDE_ENTITIES:,} live series, rows per CPU second",
            rates["wide"], f"{NARROW_ENTITIES} series", rates["narrow"], 0.8,
        ),
    ]  # fmt: skip


def small_body(number: int) -> bytes:
    """Ten records of ten entities."""
    return fleet.Walk(SMALL_RECORDS, first=number * SMALL_RECORDS).body(fleet.START)


def acknowledged(plane: Plane, writers: int, seconds: float) -> list[float]:
    """Latencies of writers that each write one small body after the other."""
    bodies = [small_body(number) for number in range(writers)]
    for body in bodies:
        plane.write_json(body)
    latencies: list[list[float]] = [[] for _ in bodies]
    until = time.perf_counter() + seconds

    def write(body: bytes, mine: list[float]) -> None:
        while (start := time.perf_counter()) < until:
            plane.write_json(body)
            mine.append(time.perf_counter() - start)

    threads = [
        threading.Thread(target=write, args=pair) for pair in zip(bodies, latencies, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [*itertools.chain.from_iterable(latencies)]


def commits(folder: Path) -> int:
    """The number of the last transaction, from the two head pages."""
    with (folder / "plane.mdb").open("rb") as file:
        heads = file.read(2 * _PAGE)
    return max(
        int.from_bytes(heads[at + _META_TXN : at + _META_TXN + 8], "little") for at in (0, _PAGE)
    )


@contextmanager
def one_commit() -> Iterator[lmdb.Environment]:
    folder = DATA / "commit"
    environment = lmdb.open(str(folder), map_size=1 << 28)
    yield environment
    environment.close()


def commit_seconds(environment: lmdb.Environment, number: int) -> float:
    start = time.perf_counter()
    with environment.begin(write=True) as transaction:
        transaction.put(number.to_bytes(8, "big"), bytes(400), append=True)
    return time.perf_counter() - start


def writers_lines(effort: Effort) -> list[Line]:
    """Many writers in one process share their commits."""
    seconds = effort.drive_seconds
    plane = new_plane("writers")
    eight = acknowledged(plane, 8, seconds)
    with one_commit() as environment:
        alone = [commit_seconds(environment, number) for number in range(effort.acknowledgements)]
    before, start = commits(DATA / "writers"), time.perf_counter()
    many = acknowledged(plane, 32, seconds)
    on_disk = len(many) / (time.perf_counter() - start)
    syncs = 2 * (commits(DATA / "writers") - before) / len(many)
    with tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        folder = str(Path(memory) / "plane")
        Plane.create(folder, MASTER_KEY)
        start = time.perf_counter()
        unsynced = acknowledged(Plane.open(folder, MASTER_KEY, "bench"), 32, seconds)
        in_memory = len(unsynced) / (time.perf_counter() - start)
    return [
        Line.at_most(
            "acknowledgement p50, 8 writers, ten records each",
            statistics.median(eight),
            "one synced LMDB commit",
            statistics.median(alone),
            2.5,
        ),
        Line(
            "syncs per acknowledged batch, 32 writers", f"{syncs:.3f}", "", syncs, "<= 0.2",
            syncs <= 0.2,
        ),
        Line.at_least(
            "batches per second, 32 writers, synced", on_disk,
            "the same on a file system in memory", in_memory, 0.9,
        ),
    ]  # fmt: skip


def compaction_lines(effort: Effort) -> list[Line]:
    """Bytes that reach the device, and bytes that stay on it."""
    bodies = effort.bodies * 30
    plane = new_plane("compaction")
    before, received = written_bytes_of("self"), 0
    for number, body in enumerate(fleet.bodies(bodies)):
        plane.write_json(body)
        received += len(body)
        if number % 100 == 99:
            plane.compact()
    plane.compact(whole=True)
    written = written_bytes_of("self") - before
    stats = plane.stats()
    folder = DATA / "compaction"
    lying = sum(p.stat().st_blocks * 512 for p in folder.rglob("*") if p.is_file())
    density = lying / stats.values
    ratio = written / received
    plane.close()
    shutil.rmtree(folder)
    return [
        Line(
            "device bytes written, compaction included", f"{written / 1e6:,.0f} MB",
            f"JSON received: {received / 1e6:,.0f} MB", ratio, "<= 0.3x", ratio <= 0.3,
        ),
        Line(f"bytes per value then, {stats.values / 1e6:.1f} M values", f"{density:.3f} B"),
    ]  # fmt: skip


def store_lines(effort: Effort) -> list[Line]:
    """All of them."""
    return [*wide_lines(), *writers_lines(effort), *compaction_lines(effort)]
