"""Streams of bodies and of messages that clients of the service send over and over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benches.inputs import fleet, trucks
from benches.inputs.messages import MESSAGE_RECORDS, message, request, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

SENDERS = 4
BODIES = 16
"""Bodies that are sent again, and bodies that a larger fleet has at each instant."""
TRUCK_BODIES = 64
SMALL_RECORDS = 10
_SMALL_BODIES = 64
_MESSAGE_RECORDS_IN_ALL = 2 * MESSAGE_RECORDS
_AGO = timedelta(days=10)  # far enough from now that what goes on does not get there


@dataclass(frozen=True)
class Stream:
    """Bodies of each sender in their turn; all may send the same ones if there is one list."""

    senders: list[list[bytes]]
    records: int
    """Of each body."""
    step_seconds: int = 0
    """Time by which all rows are later with each turn."""

    @property
    def bodies(self) -> list[bytes]:
        """Those of one turn of all senders."""
        return [body for sender in self.senders for body in sender]


def again() -> Stream:
    """Bodies of the last minutes, again and again: each row finds others of its instant."""
    start = datetime.now(UTC) - timedelta(seconds=BODIES * fleet.STEP_SECONDS)
    return Stream([list(fleet.bodies(BODIES, start))], fleet.BODY_RECORDS)


def onward() -> Stream:
    """A fleet of sixteen bodies at each instant, a quarter of it from each sender, that goes on."""
    bodies = list(fleet.wide_bodies(BODIES * fleet.BODY_RECORDS, _aligned()))
    return Stream(_shares(bodies), fleet.BODY_RECORDS, fleet.STEP_SECONDS)


def truck_turns() -> Stream:
    """Trucks of the last minutes, again and again."""
    start = datetime.now(UTC) - timedelta(seconds=(TRUCK_BODIES + 10) * trucks.STEP_SECONDS)
    return Stream([list(trucks.bodies(TRUCK_BODIES, start))], trucks.BODY_RECORDS)


def small() -> Stream:
    """Ten records of ten links in each body, as a gateway sends them, that go on."""
    start = _aligned()
    bodies = [
        fleet.Walk(SMALL_RECORDS, first=number * SMALL_RECORDS).body(start)
        for number in range(_SMALL_BODIES)
    ]
    return Stream(_shares(bodies), SMALL_RECORDS, fleet.STEP_SECONDS)


def small_trucks() -> Stream:
    """Ten records of trucks in each body, again and again."""
    start = datetime.now(UTC) - timedelta(minutes=10)
    rows = trucks.Trucks().rows(start)
    bodies = [
        ("[" + ",".join(next(rows) for _ in range(SMALL_RECORDS)) + "]").encode()
        for _ in range(_SMALL_BODIES)
    ]
    return Stream(_shares(bodies), SMALL_RECORDS)


def messages(records: int) -> Stream:
    """Messages of so many records of the fleet, again and again."""
    count = _MESSAGE_RECORDS_IN_ALL // records
    return Stream([[message(turn, records) for turn in range(count)]], records)


def stations(count: int, records: int) -> Stream:
    """A message of each ground station: as many seconds of ten links as it has records for."""
    links = 10
    senders = []
    for number in range(count):
        walk = fleet.Walk(links, first=number * links)
        rows = [
            row
            for second in range(records // links)
            for row in rows_of(walk.body(fleet.START + timedelta(seconds=second)))
        ]
        senders.append([request(rows)])
    return Stream(senders, records)


def _shares(bodies: list[bytes]) -> list[list[bytes]]:
    return [bodies[sender::SENDERS] for sender in range(SENDERS)]


def _aligned() -> datetime:
    time = datetime.now(UTC) - _AGO
    return time.replace(second=time.second // 10 * 10, microsecond=0)


AGAIN, ONWARD, TRUCKS, SMALL, SMALL_TRUCKS = "again", "onward", "trucks", "small", "small-trucks"
SENT: dict[str, Callable[[], Stream]] = {
    AGAIN: again,
    ONWARD: onward,
    TRUCKS: truck_turns,
    SMALL: small,
    SMALL_TRUCKS: small_trucks,
}
