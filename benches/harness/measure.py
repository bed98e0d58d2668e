"""Rounds, medians and CPU seconds."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SECTOR_BYTES = 512


def alternate(rounds: int, works: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The median of what each work returns, all of them run in turn, round after round.

    A disturbance of the machine that lasts a while disturbs them alike.
    """
    results: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            results[name].append(work())
    return {name: statistics.median(values) for name, values in results.items()}


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process, user and system, while `work` runs."""
    start = time.process_time()
    work()
    return time.process_time() - start


def wall_seconds(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cpu_seconds_of(processes: Iterable[int]) -> float:
    """CPU seconds, user and system, that living processes have used so far."""
    ticks = 0
    for process in processes:
        # The name in the second field may hold spaces; what follows its bracket does not.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_SECOND


def written_bytes_of(process: int | str) -> int:
    """Bytes that a process has sent to devices so far."""
    lines = Path(f"/proc/{process}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def device_written_bytes(folder: Path) -> int:
    """Bytes that the block device below a folder was sent so far, by anybody.

    A process's own count takes a page of the cache, which may be a mebibyte, for each small write
    into it.
    """
    os.sync()
    device = folder.stat().st_dev
    stat = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    return int(stat.read_text().split()[6]) * _SECTOR_BYTES


def with_children(process: int) -> list[int]:
    """A process and all below it."""
    found = [process]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def synced_append_seconds(file: int, content: bytes) -> float:
    """Seconds of one append and fdatasync."""
    start = time.perf_counter()
    os.write(file, content)
    os.fdatasync(file)
    return time.perf_counter() - start
