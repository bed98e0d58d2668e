"""Syncs of the disk before an answer: the system calls of a database, as strace reports them."""

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

from fleetcast.admin.processes import with_children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleetcast.bench.driver import Driver, Session

_CALLS = "fsync,fdatasync,msync,sync_file_range,sync,syncfs"
# Example: `123 1700000000.123456 fdatasync(5) = 0 <0.000123>`. The name is `<... fdatasync
# resumed>` if another thread's call came between.
_DONE = re.compile(r"^\d+ +(\d+\.\d+) (.*?) += 0 <(\d+\.\d+)>$")
_ATTACHED_SECONDS = 60.0


class Synced(NamedTuple):
    """Batches that were written one by one, and batches with a sync before their answer.

    A batch counts as synced if a sync that succeeded ended between its request and its answer.
    """

    batches: int
    synced: int
    calls: int
    verdict: str
    """`yes`, `no`, `some`, or why the answer is unknown."""


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
    """Follows a process and all processes below it; gives false if that is not allowed."""
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
    """Returns the state of every thread of a process and of all processes below it."""
    for each in with_children(process):
        for thread in Path(f"/proc/{each}/task").iterdir():
            with contextlib.suppress(OSError):  # the thread has ended in the meantime
                yield (thread / "status").read_text()


def _ends(lines: Sequence[str]) -> Iterator[float]:
    """Returns the times at which successful syncs ended, in seconds since 1970."""
    for line in lines:
        done = _DONE.match(line)
        if done is None:
            continue
        at, call, spent = float(done[1]), done[2], float(done[3])
        # strace writes the time at which a resumed call ended, but at which any other call began.
        yield at if call.startswith("<...") else at + spent
