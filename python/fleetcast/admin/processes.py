"""Memory, CPU time, descriptors and age of the service's processes, read from /proc."""

from __future__ import annotations

import os
import platform
import re
import resource
from contextlib import suppress
from pathlib import Path

from fleetcast.engine import VERSION
from fleetcast.metrics import sample

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PARENT_FIELD = 1  # index among the fields after the command's name
_CPU_FIELDS = slice(11, 13)
_CPU_FIELDS_WITH_ENDED = slice(11, 15)  # also of children that have ended
_THREADS_FIELD = 17
_STARTED_FIELD = 19
_VIRTUAL_FIELD, _RESIDENT_FIELD = 0, 1  # of statm
_CHILD = re.compile(rb"fleetcast\.supervisor\.([a-z]+)_child")


class ProcessValues:
    """Values of the supervisor and all processes below it, also by the names of other programs."""

    def __init__(self) -> None:
        self._cpu_ns = 0

    def read(self) -> dict[str, float]:
        """Returns sums over the processes; `process_open_fds` is of the process with the most."""
        supervisor = _supervisor()
        memory = virtual = descriptors = most = ticks = 0
        for pid in with_children(supervisor):
            try:
                ticks += sum(map(int, stat_fields(pid)[_CPU_FIELDS_WITH_ENDED]))
                virtual += _memory(pid, _VIRTUAL_FIELD)
                memory += _memory(pid, _RESIDENT_FIELD)
                held = _descriptors(pid)
            except OSError:
                continue  # the process has just ended
            descriptors += held
            most = max(most, held)
        # A process that ends between two reads would make the sum fall, and a counter never falls.
        self._cpu_ns = max(self._cpu_ns, ticks * (10**9 // _CLOCK_TICKS))
        started = _started(supervisor)
        info = sample("fleetcast_build_info", version=VERSION, python=platform.python_version())
        return {
            info: 1,
            sample("fleetcast_resident_memory_bytes"): memory,
            sample("fleetcast_open_descriptors"): descriptors,
            sample("fleetcast_start_time_seconds"): started,
            sample("process_cpu_seconds_total"): self._cpu_ns,
            sample("process_resident_memory_bytes"): memory,
            sample("process_virtual_memory_bytes"): virtual,
            sample("process_open_fds"): most,
            sample("process_max_fds"): resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            sample("process_start_time_seconds"): started,
        }


def process_list() -> list[dict[str, object]]:
    """Returns the supervisor and all processes below it, each after its parent."""
    found: list[dict[str, object]] = []
    supervisor, boot = _supervisor(), _booted()
    for pid in with_children(supervisor):
        try:
            fields = stat_fields(pid)
            cpu_ticks = sum(map(int, fields[_CPU_FIELDS]))
            found.append(
                {
                    "pid": pid,
                    "parent": None if pid == supervisor else int(fields[_PARENT_FIELD]),
                    "name": _name(pid),
                    "memory_bytes": _memory(pid, _RESIDENT_FIELD),
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


def _memory(pid: int, field: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[field]) * _PAGE_BYTES


def _descriptors(pid: int) -> int:
    with os.scandir(f"/proc/{pid}/fd") as entries:
        return sum(1 for _ in entries)


def with_children(process: int) -> list[int]:
    """Returns a process and all processes below it."""
    found = [process]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):  # the thread has ended in the meantime
                found += [int(child) for child in children.read_text().split()]
    return found


def stat_fields(pid: int) -> list[str]:
    """Returns the fields of /proc/PID/stat after the command's name.

    The name may hold any character, also brackets and spaces.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _supervisor() -> int:
    return int(stat_fields(os.getppid())[_PARENT_FIELD])  # our parent is gunicorn's arbiter


def _started(pid: int) -> float:
    """Returns the start of a process in seconds since 1970."""
    return _booted() + int(stat_fields(pid)[_STARTED_FIELD]) / _CLOCK_TICKS


def _booted() -> int:
    return next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("btime ")
    )
