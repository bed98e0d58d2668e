"""Figures of the store: entities never seen, many writers, what reaches the disk, compaction."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benches.goals.acknowledgements import acknowledged, acknowledgement_lines
from benches.goals.effort import MASTER_KEY, new_plane
from benches.goals.table import Line
from benches.harness.measure import alternate, cpu_seconds, device_written_bytes
from benches.harness.paths import DATA
from benches.inputs import fleet
from fleetcast._core import Plane, Planes

if TYPE_CHECKING:
    from benches.goals.effort import Effort

WIDE_ENTITIES = 100_000
NARROW_ENTITIES = 100
_FIRST_SIGHTS = 5
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system that syncs for nothing


def wide_lines() -> list[Line]:
    """A hundred thousand entities: the first time, again, and beside a hundred.

    All planes stay open, so each takes fresh memory. The first time is the median of several
    planes.
    """
    bodies = list(fleet.wide_bodies(WIDE_ENTITIES))
    rows = len(bodies) * fleet.BODY_RECORDS
    few = list(fleet.buffered_bodies(len(bodies)))
    wides = [new_plane(f"seen-once-{number}") for number in range(_FIRST_SIGHTS)]
    wide, narrow = wides[0], new_plane("narrow")

    def per_second(plane: Plane, bodies: list[bytes]) -> float:
        return rows / cpu_seconds(lambda: [plane.write_json(body) for body in bodies])

    first = statistics.median(per_second(plane, bodies) for plane in wides)
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


def writers_lines(effort: Effort) -> list[Line]:
    """Many writers in one process share their syncs."""
    seconds = effort.drive_seconds
    plane, start = new_plane("writers"), time.perf_counter()
    many = acknowledged(plane, range(32), seconds)
    on_disk = len(many) / (time.perf_counter() - start)
    with tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        planes = Planes.in_directory(memory)
        planes.create("plane", MASTER_KEY)
        start = time.perf_counter()
        unsynced = acknowledged(planes.open("plane", MASTER_KEY, "bench"), range(32), seconds)
        in_memory = len(unsynced) / (time.perf_counter() - start)
    return [
        Line.at_least(
            "batches per second, 32 writers, synced", on_disk,
            "the same on a file system in memory", in_memory, 0.9,
        ),
    ]  # fmt: skip


def compaction_lines(effort: Effort) -> list[Line]:
    """Bytes that reach the device, and bytes that stay on it."""
    bodies = effort.bodies * 30
    plane = new_plane("compaction")
    before, received = device_written_bytes(DATA), 0
    for number, body in enumerate(fleet.bodies(bodies)):
        plane.write_json(body)
        received += len(body)
        if number % 100 == 99:
            plane.compact()
    plane.compact(whole=True)
    written = device_written_bytes(DATA) - before
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
    return [
        *wide_lines(),
        *acknowledgement_lines(effort),
        *writers_lines(effort),
        *compaction_lines(effort),
    ]
