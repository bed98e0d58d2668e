"""Requests that clients of the service send over and over, out of bodies that were made before."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benches.inputs import fleet, trucks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SENDERS = 4
BODIES = 16
"""Bodies that are sent again, and bodies that a larger fleet has at each instant."""
TRUCK_BODIES = 64
_AGO = timedelta(hours=12)


def _requests(head: bytes, bodies: list[bytes]) -> list[bytes]:
    return [head + str(len(body)).encode() + b"\r\n\r\n" + body for body in bodies]


def _in_turns(requests: list[bytes]) -> list[Iterator[bytes]]:
    """The same requests for each sender, each some requests ahead of the one before."""

    def turns(first: int) -> Iterator[bytes]:
        return itertools.islice(itertools.cycle(requests), first, None)

    return [turns(5 * sender) for sender in range(SENDERS)]


def again(head: bytes) -> list[Iterator[bytes]]:
    """Bodies of the last minutes, again and again: each row finds others of its instant."""
    return _in_turns(_requests(head, again_bodies()))


def again_bodies() -> list[bytes]:
    """The bodies of `again`."""
    start = datetime.now(UTC) - timedelta(seconds=BODIES * fleet.STEP_SECONDS)
    return list(fleet.bodies(BODIES, start))


def onward(head: bytes) -> list[Iterator[bytes]]:
    """A fleet of sixteen bodies at each instant, a quarter of it from each sender, that goes on."""
    start = _aligned(datetime.now(UTC) - _AGO)
    requests = _requests(head, onward_bodies(start))

    def turns(sender: int) -> Iterator[bytes]:
        for step in itertools.count():
            time = start + timedelta(seconds=step * fleet.STEP_SECONDS)
            for request in requests[sender::SENDERS]:
                yield request.replace(_stamp(start), _stamp(time))

    return [turns(sender) for sender in range(SENDERS)]


def onward_bodies(start: datetime = fleet.START) -> list[bytes]:
    """The bodies of one instant of `onward`."""
    return list(fleet.wide_bodies(BODIES * fleet.BODY_RECORDS, start))


def truck_turns(head: bytes) -> list[Iterator[bytes]]:
    """Trucks of the last minutes, again and again."""
    return _in_turns(_requests(head, truck_bodies()))


def truck_bodies() -> list[bytes]:
    """The bodies of `truck_turns`."""
    start = datetime.now(UTC) - timedelta(seconds=(TRUCK_BODIES + 10) * trucks.STEP_SECONDS)
    return list(trucks.bodies(TRUCK_BODIES, start))


def _aligned(time: datetime) -> datetime:
    return time.replace(second=time.second // 10 * 10, microsecond=0)


def _stamp(time: datetime) -> bytes:
    """Beginning of the times of all rows of a body that begins at `time`, in bytes of JSON."""
    return f'"time":"{time:%Y-%m-%dT%H:%M:%S}'[:-1].encode()


AGAIN, ONWARD, TRUCKS = "again", "onward", "trucks"
SENT: dict[str, Callable[[bytes], list[Iterator[bytes]]]] = {
    AGAIN: again,
    ONWARD: onward,
    TRUCKS: truck_turns,
}
