"""Checks of the machine: versions, the running service, descriptors, the clock."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.installation.diagnosis.finding import Finding
from fleetcast.installation.lock import seen

if TYPE_CHECKING:
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.lock import Seen

_DESCRIPTORS_LEAST = 10_240  # five for each store that a process keeps open, twice over
_TIMEX_BYTES = 512  # more than the structure has
_CLOCK_UNSYNCHRONISED = 5  # TIME_ERROR of sys/timex.h


def check_machine(directory: DataDirectory) -> list[Finding]:
    """Checks versions, the running service, its descriptors, and the clock."""
    lock = seen(directory.lock)
    return [
        Finding.good("versions", f"fleetcast {version('fleetcast')}, Python {_python()}"),
        _service(lock),
        _descriptors(lock),
        _clock(),
    ]


def _python() -> str:
    return f"{platform.python_version()}, {platform.system()} {platform.release()}"


def _service(lock: Seen) -> Finding:
    if not lock.held:
        if lock.pid is None:
            return Finding.good("service", "does not run")
        detail = "does not run; the last one ended without being stopped"
        return Finding.warning(
            "service", detail, "look for its last lines in the log, and start it"
        )
    running, here = lock.note.get("version"), version("fleetcast")
    if running is not None and running != here:
        detail = f"runs version {running}, this is {here}"
        return Finding.warning("service", detail, "restart it")
    return Finding.good("service", f"runs as process {lock.pid}")


def _descriptors(lock: Seen) -> Finding:
    """Checks the hard limit, to which the service raises its own limit.

    If the service runs, checks the limit of the service's process.
    """
    hard = _limit_of(lock.pid) if lock.held and lock.pid else None
    if hard is None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    detail = "no limit" if hard == resource.RLIM_INFINITY else f"up to {hard} a process"
    if hard != resource.RLIM_INFINITY and hard < _DESCRIPTORS_LEAST:
        advice = f"raise the hard limit to {_DESCRIPTORS_LEAST} (ulimit -Hn, LimitNOFILE=)"
        return Finding.warning("descriptors", detail, advice)
    return Finding.good("descriptors", detail)


def _limit_of(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("Max open files"):
            word = line.split()[4]
            return int(word) if word.isdigit() else resource.RLIM_INFINITY
    return None


def _clock() -> Finding:
    """Asks the kernel if a time service sets the clock."""
    libc = ctypes.CDLL(None, use_errno=True)
    state = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if state < 0:
        return Finding.good("clock", f"unknown: {os.strerror(ctypes.get_errno())}")
    if state == _CLOCK_UNSYNCHRONISED:
        detail = "no time service sets it: records are clamped to it, and reads go by it"
        return Finding.warning("clock", detail, "run chrony or systemd-timesyncd")
    return Finding.good("clock", "set by a time service")
