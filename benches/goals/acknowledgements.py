"""Acknowledgements of small bodies: one writer, and many in two processes, beside the disk alone.

Reference is one positioned write of as many bytes and `fdatasync`, into space that was reserved, in
the directory of the plane; engine and reference take turns. Syncs are those that the engine counts
in the plane's lock file; flushes are those of the disk, where the system shows them and nobody else
is at work on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benches.goals.effort import MASTER_KEY, new_plane
from benches.goals.table import Line
from benches.harness.paths import DATA
from benches.inputs import fleet
from fleetcast._core import Plane

if TYPE_CHECKING:
    from benches.goals.effort import Effort

SMALL_RECORDS = 10
ROUNDS = 4
_SYNCS_AT = 88  # docs/format.md, "Shared state"
_FLUSHES = 15  # of a line of /sys/block/*/stat


def small_body(number: int) -> bytes:
    """Ten records of ten entities."""
    return fleet.Walk(SMALL_RECORDS, first=number * SMALL_RECORDS).body(fleet.START)


def acknowledged(plane: Plane, numbers: range, seconds: float) -> list[float]:
    """Latencies of writers that each write one small body after the other."""
    bodies = [small_body(number) for number in numbers]
    latencies: list[list[float]] = [[] for _ in bodies]
    until = time.perf_counter() + seconds

    def write(body: bytes, mine: list[float]) -> None:
        while (start := time.perf_counter()) < until:
            plane.write_json(body)
            mine.append(time.perf_counter() - start)

    pairs = zip(bodies, latencies, strict=True)
    threads = [threading.Thread(target=write, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [latency for mine in latencies for latency in mine]


class Writers:
    """Writers shared out over processes that have one plane open."""

    def __init__(self, folder: Path, writers: int, processes: int) -> None:
        each = writers // processes
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", __name__, str(folder), str(number * each), str(each)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for number in range(processes)
        ]
        for process in self._processes:
            process.stdout.readline()  # it is ready

    def work(self, seconds: float) -> list[float]:
        """Latencies of all of them, at work at once."""
        for process in self._processes:
            process.stdin.write(b"%f\n" % seconds)
            process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for process in self._processes]
        return [latency for latencies in answers for latency in latencies]

    def end(self) -> None:
        """Closes their planes."""
        for process in self._processes:
            process.communicate()


class Appends:
    """Appends of some bytes, each made durable, into space that was reserved."""

    def __init__(self, path: Path, size: int) -> None:
        self._bytes, self._at = bytes(size), 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(self._file, bytes(64 << 20), 0)
        os.fsync(self._file)

    def work(self, seconds: float) -> list[float]:
        """Latencies."""
        latencies = []
        until = time.perf_counter() + seconds
        while (start := time.perf_counter()) < until:
            os.pwrite(self._file, self._bytes, self._at)
            os.fdatasync(self._file)
            self._at = (self._at + len(self._bytes)) % (63 << 20)
            latencies.append(time.perf_counter() - start)
        return latencies


@dataclass
class Measured:
    """Figures of some writers."""

    p50: float
    reference_p50: float
    batches: int
    syncs: int
    flushes: int | None


def syncs_of(folder: Path) -> int:
    """Syncs of the log that all processes have tried."""
    with (folder / "plane.log-lock").open("rb") as file:
        file.seek(_SYNCS_AT)
        return int.from_bytes(file.read(8), "little")


def flushes() -> int | None:
    """Flushes of all disks, where the system counts them."""
    total = None
    for path in Path("/sys/block").glob("*/stat"):
        with contextlib.suppress(OSError, IndexError):
            total = (total or 0) + int(path.read_text().split()[_FLUSHES])
    return total


def measure(writers: int, processes: int, seconds: float) -> Measured:
    """Writers and the reference, in turns."""
    folder = DATA / f"acknowledged-{writers}"
    plane = new_plane(folder.name)
    for number in range(writers):
        plane.write_json(small_body(number))  # names that nobody knows cost commits of their own
    size = plane.stats().log_bytes // writers + 96
    at_work = Writers(folder, writers, processes)
    appends = Appends(folder.with_suffix(".reference"), size)
    latencies: list[float] = []
    reference: list[float] = []
    syncs, flushed = 0, 0 if flushes() is not None else None
    at_work.work(0.2)
    for _ in range(ROUNDS):
        reference += appends.work(seconds / ROUNDS)
        before, disk = syncs_of(folder), flushes()
        latencies += at_work.work(seconds / ROUNDS)
        syncs += syncs_of(folder) - before
        if flushed is not None:
            flushed += flushes() - disk
    at_work.end()
    plane.close()
    medians = statistics.median(latencies), statistics.median(reference)
    return Measured(*medians, len(latencies), syncs, flushed)


def acknowledgement_lines(effort: Effort) -> list[Line]:
    """One writer, and many in two processes."""
    lines = []
    for writers, processes, times, per_batch in ((1, 1, 1.2, 1.0), (8, 2, 2, 0.3), (32, 2, 3, 0.3)):
        found = measure(writers, processes, effort.drive_seconds)
        name = f"{writers} writers in {processes} processes" if processes > 1 else "one writer"
        lines.append(
            Line.at_most(
                f"acknowledgement p50, {name}, ten records each", found.p50,
                "append and fdatasync of as many bytes", found.reference_p50, times,
            )
        )  # fmt: skip
        syncs = found.syncs / found.batches
        flushed = "" if found.flushes is None else f"disk: {found.flushes / found.batches:.2f}"
        lines.append(
            Line(
                f"syncs per acknowledged batch, {name}", f"{syncs:.3f}", flushed, syncs,
                f"<= {per_batch}", syncs <= per_batch * 1.02,
            )
        )  # fmt: skip
    return lines


def _write_for_parent(folder: str, first: int, count: int) -> None:
    plane = Plane.open(folder, MASTER_KEY, "bench")
    for number in range(first, first + count):
        plane.write_json(small_body(number))
    print("ready", flush=True)
    for line in sys.stdin:
        latencies = acknowledged(plane, range(first, first + count), float(line))
        print(json.dumps(latencies), flush=True)
    plane.close()


if __name__ == "__main__":
    _write_for_parent(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
