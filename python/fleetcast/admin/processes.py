"""Memory, descriptors and age of the service's processes, read from /proc."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

from fleetcast.metrics import sample

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PARENT_FIELD = 1  # index among the fields after the command's name
_CPU_FIELDS = slice(11, 13)
_THREADS_FIELD = 17
_STARTED_FIELD = 19
_CHILD = re.compile(rb"fleetcast\.supervisor\.([a-z]+)_child")


def process_values() -> dict[str, float]:
    """Returns sums over the supervisor and all processes below it."""
    supervisor = _supervisor()
    memory = descriptors = 0
    for pid in _tree(supervisor):
        try:
            memory += _memory(pid)
            descriptors += _descriptors(pid)
        except OSError:
            continue  # the process has just ended
    info = sample(
        "fleetcast_build_info", version=version("fleetcast"), python=platform.python_version()
    )
    return {
        info: 1,
        sample("fleetcast_resident_memory_bytes"): memory,
        sample("fleetcast_open_descriptors"): descriptors,
        sample("fleetcast_start_time_seconds"): _started(supervisor),
    }


def process_list() -> list[dict[str, object]]:
    """Returns the supervisor and all processes below it, each after its parent."""
    found: list[dict[str, object]] = []
    supervisor, boot = _supervisor(), _booted()
    for pid in _tree(supervisor):
        try:
            fields = _stat(pid)
            cpu_ticks = sum(map(int, fields[_CPU_FIELDS]))
            found.append(
                {
                    "pid": pid,
                    "parent": None if pid == supervisor else int(fields[_PARENT_FIELD]),
                    "name": _name(pid),
                    "memory_bytes": _memory(pid),
                    "descriptors": _descriptors(pid),
                    "threads": int(fields[_THREADS_FIELD]),
                    "cpu_seconds": cpu_ticks / _CLOCK_TICKS,
                    "started_at": boot + int(fields[_STARTED_FIELD]) / _CLOCK_TICKS,
                }
            )
        except OSError:
            continue  # the process has just ended
    return found


def _name(pid: int) -> str:
    child = _CHILD.search(Path(f"/proc/{pid}/cmdline").read_bytes())
    return "supervisor" if child is None else child[1].decode()


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def _descriptors(pid: int) -> int:
    with os.scandir(f"/proc/{pid}/fd") as entries:
        return sum(1 for _ in entries)


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
    """Returns the fields of /proc/PID/stat after the command's name.

    The name may hold any character, also brackets and spaces.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _supervisor() -> int:
    return int(_stat(os.getppid())[_PARENT_FIELD])  # our parent is gunicorn's arbiter


def _started(pid: int) -> float:
    """Returns the start of a process in seconds since 1970."""
    return _booted() + int(_stat(pid)[_STARTED_FIELD]) / _CLOCK_TICKS


def _booted() -> int:
    return next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("btime ")
    )
