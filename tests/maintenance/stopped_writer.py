"""A process that is stopped within a commit, and so holds a writer's lock of a plane."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A lock names its holder by thread.
_WRITE = """
import itertools, sys, threading
from pathlib import Path
from fleetcast.engine import Planes

def write():
    print(threading.get_native_id(), flush=True)
    for number in itertools.count():
        if sys.argv[3] == "log":
            plane.write_json(b'[{"measurement":"link","time":"2026-01-01","fields":{"a":1}}]')
        else:
            plane.set_retention(1_000_000_000 + number % 2)

folder = Path(sys.argv[1])
planes = Planes.in_directory(folder.parent)
plane = planes.open(folder.name, bytes.fromhex(sys.argv[2]), "acme")
threading.Thread(target=write).start()
"""


_TURN_SECONDS = 0.001  # of the processor: some commits


def cpu_seconds(pid: int) -> float:
    """Time of the processor that a process has had, by its clock as of clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


@contextmanager
def stopped_writer(folder: Path, master_key: bytes, of: str = "log") -> Iterator[None]:
    """Nobody else writes to the log of the plane in `folder`, or to its tables, until the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITE, str(folder), master_key.hex(), of], stdout=subprocess.PIPE
    )
    try:
        thread = int(process.stdout.readline()).to_bytes(4, sys.byteorder)
        lock = folder / ("plane.log-lock" if of == "log" else "plane.mdb-lock")
        while True:
            os.kill(process.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            if thread in lock.read_bytes():
                break
            ran = cpu_seconds(process.pid)
            os.kill(process.pid, signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED)
            # Or on a loaded machine it might be stopped before it has had a turn, each time.
            until(lambda ran=ran: cpu_seconds(process.pid) >= ran + _TURN_SECONDS)
        yield
    finally:
        process.kill()
        process.communicate()
