"""Waiting for events that announce themselves to nobody."""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


class Answered(Protocol):
    """An answer of HTTP or of gRPC."""

    status: int | str


T = TypeVar("T")
A = TypeVar("A", bound=Answered)

PATIENCE_SECONDS = 120.0
"""After so long an event is taken for one that never comes; no test measures by it."""

_LOOK_SECONDS = 0.02


def until(look: Callable[[], T]) -> T:
    """Waits until `look` gives something true, and returns it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < end, "it does not come to be"
        time.sleep(_LOOK_SECONDS)
    return found


def until_well(probe: Callable[[], A]) -> A:
    """Waits until `probe` tells of nothing that is down, and returns its answer, which is good.

    Probes give what they ask a second or two (J2), and a loaded machine may take longer once.
    """

    def look() -> A | None:
        answer = probe()
        return None if answer.status in (503, "UNAVAILABLE") else answer

    answer = until(look)
    assert answer.status in (200, "OK"), answer
    return answer


def is_readable(descriptor: int, seconds: float = PATIENCE_SECONDS) -> bool:
    """Waits until a descriptor can be read; that of a process can once the process has ended.

    `select.select` would refuse a number above 1,023.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1_000))


def until_refused(address: str) -> None:
    """Waits until `address`, a host and a port, takes no connection.

    A connection that was waiting in the listener is reset when the listener closes: the
    connection after it is refused.
    """
    host, _, port = address.rpartition(":")
    until(lambda: _is_refused(host, int(port)))


def _is_refused(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=PATIENCE_SECONDS).close()
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False
