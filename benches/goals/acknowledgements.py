"""Acknowledgements of small bodies: one writer, and many in two processes, beside the disk alone.

Reference is one positioned write of as many bytes and `fdatasync`, into space that was reserved, in
the directory of the plane; engine and reference take turns, each in processes of its own. Where a
sync is nearly free, the ratio is one of CPU: so all is measured once more with a `fdatasync` that
takes 0.5 ms longer, in both, by a library that is loaded before that of the system. Syncs are those
that the engine counts in the plane's lock file; flushes are those of the disk, where the system
shows them and nobody else is at work on it.
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
from fleetcast._core import Plane, Planes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benches.goals.effort import Effort

SMALL_RECORDS = 10
ROUNDS = 4
SLOW_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int fdatasync(int file) {
    int (*system_call)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    int outcome = system_call(file);
    nanosleep(&(struct timespec) {0, 500000}, 0);
    return outcome;
}
"""
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


class Workers:
    """Processes that are at work when they are told to, and answer with latencies."""

    def __init__(self, *each: tuple[object, ...], environment: Mapping[str, str]) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", __name__, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **environment},
            )
            for arguments in each
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


def slow_disk() -> dict[str, str]:
    """Environment of processes whose syncs take half a millisecond longer."""
    library = DATA / "slow-disk.so"
    DATA.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(command, input=SLOW_DISK, text=True, check=True)
    return {"LD_PRELOAD": str(library)}


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


def measure(
    writers: int, processes: int, seconds: float, environment: Mapping[str, str]
) -> Measured:
    """Writers and the reference, in turns."""
    disk = "-slow" if environment else ""
    folder = DATA / f"acknowledged-{writers}{disk}"
    plane = new_plane(folder.name)
    for number in range(writers):
        plane.write_json(small_body(number))  # names that nobody knows cost commits of their own
    size = plane.stats().log_bytes // writers + 96
    each = writers // processes
    shares = [("write", folder, number * each, each) for number in range(processes)]
    at_work = Workers(*shares, environment=environment)
    reserved = ("append", folder.with_suffix(".reference"), size)
    appends = Workers(reserved, environment=environment)
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
    appends.end()
    plane.close()
    medians = statistics.median(latencies), statistics.median(reference)
    return Measured(*medians, len(latencies), syncs, flushed)


def acknowledgement_lines(effort: Effort) -> list[Line]:
    """One writer, and many in two processes."""
    lines = []
    for disk, environment in (("", {}), (", a sync of 0.5 ms more", slow_disk())):
        for writers, processes, times, per_batch in (
            (1, 1, 1.2, 1.0),
            (8, 2, 2, 0.3),
            (32, 2, 3, 0.3),
        ):
            found = measure(writers, processes, effort.drive_seconds, environment)
            name = f"{writers} writers in {processes} processes" if processes > 1 else "one writer"
            lines.append(
                Line.at_most(
                    f"acknowledgement p50, {name}, ten records each{disk}", found.p50,
                    "append and fdatasync of as many bytes", found.reference_p50, times,
                )
            )  # fmt: skip
            syncs = found.syncs / found.batches
            flushed = "" if found.flushes is None else f"disk: {found.flushes / found.batches:.2f}"
            lines.append(
                Line(
                    f"syncs per acknowledged batch, {name}{disk}", f"{syncs:.3f}", flushed, syncs,
                    f"<= {per_batch}", syncs <= per_batch * 1.02,
                )
            )  # fmt: skip
    return lines


def _write_for_parent(folder: str, first: str, count: str) -> None:
    numbers = range(int(first), int(first) + int(count))
    plane = Planes.in_directory(Path(folder).parent).open(Path(folder).name, MASTER_KEY, "bench")
    for number in numbers:
        plane.write_json(small_body(number))
    _answer(lambda seconds: acknowledged(plane, numbers, seconds))
    plane.close()


def _append_for_parent(path: str, size: str) -> None:
    _answer(Appends(Path(path), int(size)).work)


def _answer(work: Callable[[float], list[float]]) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(work(float(line))), flush=True)


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {
        "write": _write_for_parent,
        "append": _append_for_parent,
    }
    roles[sys.argv[1]](*sys.argv[2:])
