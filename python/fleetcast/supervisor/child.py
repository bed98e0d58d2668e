"""What the supervisor and its children say to each other.

A child's standard input is a pipe whose other end only the supervisor holds. The first line on it
is the `Brief`; nothing follows, and its end means that the supervisor is gone, however it went.
A child writes one byte to `ready_fd` for each of its processes that serves.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from fleetcast.config import settings_from_json, settings_to_json

if TYPE_CHECKING:
    from fleetcast.config import Settings

_STDIN = 0
_CHUNK_BYTES = 65_536
_ORPHAN_GRACE_SECONDS = 5.0  # children have 10 s to end after the supervisor, even if all is slow
_SWITCH_SECONDS = 0.0005  # how long a thread that computes in Python keeps another one waiting
_PR_SET_PDEATHSIG = 1  # prctl(2), linux/prctl.h


@dataclass(frozen=True, kw_only=True)
class Brief:
    """All that a child is told. `listener_fd` is a bound socket, or `None` for no listener."""

    data: Path
    settings: Settings
    master_key: bytes
    listener_fd: int | None
    ready_fd: int
    counters_fd: int
    board_fd: int
    run: str
    """Names this run of the service."""

    def encode(self) -> bytes:
        """One line."""
        document = {
            "data": str(self.data),
            "settings": settings_to_json(self.settings),
            "master_key": self.master_key.hex(),
            "listener_fd": self.listener_fd,
            "ready_fd": self.ready_fd,
            "counters_fd": self.counters_fd,
            "board_fd": self.board_fd,
            "run": self.run,
        }
        return json.dumps(document).encode() + b"\n"

    @staticmethod
    def decode(line: bytes) -> Brief:
        """Reads what `encode` wrote."""
        document = json.loads(line)
        return Brief(
            data=Path(document["data"]),
            settings=settings_from_json(document["settings"]),
            master_key=bytes.fromhex(document["master_key"]),
            listener_fd=document["listener_fd"],
            ready_fd=document["ready_fd"],
            counters_fd=document["counters_fd"],
            board_fd=document["board_fd"],
            run=document["run"],
        )


def read_brief() -> Brief:
    """The brief on standard input. Raises `EOFError` where the supervisor is gone already.

    Every child begins so: what it has imported lives as long as the process does, and is taken out
    of the collector's sight. Otherwise each full collection, and the end, goes through all of it.
    """
    gc.freeze()
    sys.setswitchinterval(_SWITCH_SECONDS)
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(_STDIN, _CHUNK_BYTES)
        if not chunk:
            raise EOFError
        line += chunk
    return Brief.decode(line)


def report_ready(brief: Brief) -> None:
    """Tells the supervisor that one process serves. After a restart nobody listens any more."""
    try:
        os.write(brief.ready_fd, b"1")
    except OSError:
        structlog.get_logger(__name__).debug("nobody waits for readiness")


def end_with_supervisor() -> None:
    """Makes this process stop gracefully when the supervisor is gone, and end in any case.

    Neither threads nor the death signal survive a fork: call it in every process.
    """
    # A process that somebody stopped could not watch. Its parent's death lets it go on; the kernel
    # does so by itself only for groups that had come to a stop before they were orphaned.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    poller = select.poll()
    poller.register(_STDIN, 0)  # a hang-up is reported unasked
    poller.poll()
    os.kill(os.getpid(), signal.SIGTERM)
    # Long enough to finish what is under way; then the whole group goes, stuck or not.
    select.select([], [], [], _ORPHAN_GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)
