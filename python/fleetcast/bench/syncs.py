"""Syncs of the disk before an answer: the calls of a database, as strace sees them."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.bench.processes import with_children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleetcast.bench.driver import Driver, Session

_CALLS = "fsync,fdatasync,msync,sync_file_range,sync,syncfs"
# `123 1700000000.123456 fdatasync(5) = 0 <0.000123>`; the name is `<... fdatasync resumed>` where
# another thread came between.
_DONE = re.compile(r"^\d+ +(\d+\.\d+) (.*?) += 0 <(\d+\.\d+)>$")
_ATTACHED_SECONDS = 60.0


class Synced(NamedTuple):
    """Batches that were written one by one, and those with a sync between question and answer."""

    batches: int
    synced: int
    calls: int
    verdict: str
    """`yes`, `no`, `some`, or why that is unknown."""


def watch(driver: Driver, payloads: Sequence[object]) -> Synced:
    """Writes batches one after the other over one connection, and watches all processes."""
    process = driver.process()
    if process is None:
        return Synced(0, 0, 0, "unknown: its process is not known")
    strace = shutil.which("strace")
    if strace is None:
        return Synced(0, 0, 0, "unknown: strace is not installed")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "calls"
        session = driver.connect()
        try:
            with _traced(strace, process, output) as attached:
                if not attached:
                    return Synced(0, 0, 0, "unknown: strace may not look at it")
                spans = [_span(session, payload) for payload in payloads]
        finally:
            session.close()
        ends = list(_ends(output.read_text().splitlines()))
    synced = sum(any(begin <= at <= end for at in ends) for begin, end in spans)
    verdict = "yes" if synced == len(spans) else "some" if synced else "no"
    return Synced(len(spans), synced, len(ends), verdict)


def _span(session: Session, payload: object) -> tuple[float, float]:
    before = time.time()
    session.write(payload)
    return before, time.time()


@contextlib.contextmanager
def _traced(strace: str, process: int, output: Path) -> Iterator[bool]:
    """Follows a process and all below it; gives whether that is allowed."""
    options = ["-f", "-ttt", "-T", "-e", f"trace={_CALLS}", "-o", str(output)]
    named = [part for each in with_children(process) for part in ("-p", str(each))]
    tracer = subprocess.Popen(  # noqa: S603 - found on the path
        [strace, *options, *named], stderr=subprocess.PIPE, text=True
    )
    try:
        yield _is_attached(tracer, process)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=_ATTACHED_SECONDS)


def _is_attached(tracer: subprocess.Popen[str], process: int) -> bool:
    deadline = time.monotonic() + _ATTACHED_SECONDS
    while time.monotonic() < deadline and tracer.poll() is None:
        if all(f"TracerPid:\t{tracer.pid}\n" in status for status in _statuses(process)):
            return True
        time.sleep(0.01)
    return False


def _statuses(process: int) -> Iterator[str]:
    """State of every thread of a process and all below it."""
    for each in with_children(process):
        for thread in Path(f"/proc/{each}/task").iterdir():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                yield (thread / "status").read_text()


def _ends(lines: Sequence[str]) -> Iterator[float]:
    """The instants at which syncs were done that succeeded."""
    for line in lines:
        done = _DONE.match(line)
        if done is None:
            continue
        at, call, spent = float(done[1]), done[2], float(done[3])
        # A resumed call is written down at its end, any other at its beginning.
        yield at if call.startswith("<...") else at + spent
