"""Memory, descriptors and start of the service's processes, read from /proc."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from fleetcast.metrics import sample

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STARTED_FIELD = 19  # of those after the command's name


def process_values() -> dict[str, float]:
    """Sums over the supervisor and all below it."""
    supervisor = _parent(os.getppid())  # ours is gunicorn's arbiter
    memory = descriptors = 0
    for pid in _tree(supervisor):
        try:
            memory += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
            descriptors += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - counted only
        except OSError:
            continue  # it has just ended
    info = sample(
        "fleetcast_build_info", version=version("fleetcast"), python=platform.python_version()
    )
    return {
        info: 1,
        sample("fleetcast_resident_memory_bytes"): memory,
        sample("fleetcast_open_descriptors"): descriptors,
        sample("fleetcast_start_time_seconds"): _started(supervisor),
    }


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the command's name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _started(pid: int) -> float:
    """Seconds since 1970."""
    boot = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("btime ")
    )
    return boot + int(_stat(pid)[_STARTED_FIELD]) / _CLOCK_TICKS
