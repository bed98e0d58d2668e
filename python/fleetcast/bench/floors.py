"""Figures of the machine itself, for comparison with the figures of a database."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

_SYNCS = 50
_APPENDED = bytes(65_536)
_COPIED_BYTES = 64 << 20
_COPIES = 10


def floors(folder: Path) -> dict[str, object]:
    """Measures a sync of 64 KiB appended to a file in `folder`, and a copy in memory.

    Example: if a sync takes 2 ms, one connection cannot get more than 500 synced answers a second.
    """
    return {
        "fdatasync_seconds": _sync_seconds(folder),
        "memcpy_bytes_per_second": _copied_per_second(),
        "processors": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def _sync_seconds(folder: Path) -> float:
    spent = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_SYNCS):
            before = time.perf_counter()
            file.write(_APPENDED)
            os.fdatasync(file.fileno())
            spent.append(time.perf_counter() - before)
    return statistics.median(spent)


def _copied_per_second() -> float:
    source, target = bytearray(_COPIED_BYTES), memoryview(bytearray(_COPIED_BYTES))
    spent = []
    for _ in range(_COPIES):
        before = time.perf_counter()
        target[:] = source
        spent.append(time.perf_counter() - before)
    return _COPIED_BYTES / statistics.median(spent)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
