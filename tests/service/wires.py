"""Connections to one worker each. The kernel decides which worker a new one comes to.

One after the other they come to the same worker nearly always; of some at once, each gets a part.
"""

from __future__ import annotations

import contextlib
import http.client
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_AT_ONCE = 4


class Wire(http.client.HTTPConnection):
    """A connection that stays with its worker: it is never opened anew."""

    auto_open = 0

    def __init__(self, address: str) -> None:
        super().__init__(address, timeout=PATIENCE_SECONDS)
        self.connect()


@contextlib.contextmanager
def wires_to(workers: Callable[[], list[int]], address: str) -> Iterator[list[Wire]]:
    """A connection to each of the workers that live, which listen at an address."""
    with contextlib.ExitStack() as opened:
        found: dict[int, Wire] = {}

        def look() -> list[Wire]:
            living = workers()
            wires = [Wire(address) for _ in range(_AT_ONCE)]
            for wire in wires:
                opened.callback(wire.close)
            until(lambda: holders(living, wires) or workers() != living)
            found.update(zip(holders(living, wires), wires, strict=False))
            are_all = found.keys() >= set(living) and workers() == living
            return [found[pid] for pid in living] if are_all else []

        yield until(look)


def holders(workers: Sequence[int], wires: Sequence[http.client.HTTPConnection]) -> list[int]:
    """The worker that has accepted each connection; none while one has not been accepted.

    Sockets are looked for in proc_net_tcp(5) and proc_pid_fd(5).
    """
    theirs = f":{wires[0].sock.getpeername()[1]:04X}"
    rows = (row.split() for row in Path("/proc/net/tcp").read_text().splitlines() if theirs in row)
    sockets = {row[2][-4:]: f"socket:[{row[9]}]" for row in rows if row[1].endswith(theirs)}
    owners = {name: pid for pid in workers for name in _descriptors(pid)}
    named = [sockets.get(f"{wire.sock.getsockname()[1]:04X}") for wire in wires]
    return [owners[name] for name in named] if owners.keys() >= set(named) else []


def _descriptors(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):  # it has ended
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed at this moment
                found.add(str(link.readlink()))
    return found
