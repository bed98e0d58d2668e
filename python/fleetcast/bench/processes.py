"""Processes of a database: their CPU, their end, and the bytes of their files."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING

from fleetcast.admin.processes import stat_fields, with_children
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable
    from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_ENDED_CHILDREN = slice(13, 15)  # user and system
_BLOCK_BYTES = 512
_END_SECONDS = 60.0


def cpu_seconds_of(processes: Iterable[int]) -> float:
    """Returns the CPU seconds, user and system, of living processes, to the nanosecond."""
    return sum(time.clock_gettime(_cpu_clock(process)) for process in processes)


def _cpu_clock(process: int) -> int:
    """Returns the clock of a process's CPU, as `clock_getcpuclockid` of POSIX makes it on Linux."""
    return ~process << 3 | 2


def cpu_seconds_below(process: int) -> float:
    """Returns the CPU seconds of a process and all processes below it, ended children included."""
    living = with_children(process)
    return cpu_seconds_of(living) + _ended_seconds(process)


def _ended_seconds(process: int) -> float:
    """Returns the CPU seconds of the process's ended children, which the system counts in ticks."""
    return sum(map(int, stat_fields(process)[_ENDED_CHILDREN])) / _TICKS_PER_SECOND


def kill_below(process: int) -> None:
    """Ends a process and all processes below it by `kill -9`; returns when all have ended."""
    descriptors = []
    for each in with_children(process):
        with contextlib.suppress(ProcessLookupError):
            descriptors.append(os.pidfd_open(each))
    try:
        for descriptor in descriptors:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        for descriptor in descriptors:
            ended = select.poll()  # `select.select` takes no descriptor above 1,023
            ended.register(descriptor, select.POLLIN)
            ended.poll(_END_SECONDS * 1_000)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def bytes_below(folder: Path) -> int:
    """Returns the bytes that files take on disk, in whole blocks."""
    found = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # removed in the meantime
            found += path.lstat().st_blocks * _BLOCK_BYTES
    return found


def free_port() -> int:
    """Returns a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def wait_until(is_there: Callable[[], bool], program: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until a started program answers. Raises `OperatorError` if the program ends."""
    deadline = time.monotonic() + _END_SECONDS
    while not is_there():
        if program.poll() is not None or time.monotonic() > deadline:
            lines = log.read_text(errors="replace").splitlines()[-1:]
            message = f"{program.args!r} did not start: {''.join(lines) or 'no word why'}"
            raise OperatorError(message)
        time.sleep(0.05)
