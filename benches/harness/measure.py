"""Rounds, medians and CPU seconds."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.admin.processes import with_children
from fleetcast.bench.processes import cpu_seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "alternate",
    "cpu_seconds",
    "cpu_seconds_of",
    "device_written_bytes",
    "synced_append_seconds",
    "wall_seconds",
    "with_children",
    "written_bytes_of",
]

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


def synced_append_seconds(file: int, content: bytes) -> float:
    """Seconds of one append and fdatasync."""
    start = time.perf_counter()
    os.write(file, content)
    os.fdatasync(file)
    return time.perf_counter() - start
