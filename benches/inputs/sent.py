"""Streams of bodies and of messages that clients of the service send over and over."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from benches.inputs import fleet, trucks
from benches.inputs.messages import request, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

SENDERS = 4
BODIES = 16
"""Bodies that are sent again, and bodies that a larger fleet has at each instant."""
TRUCK_BODIES = 64
SMALL_RECORDS = 10
_SMALL_BODIES = 64
INSTANTS = 8
"""Instants of what goes on until its values come again, with later times."""
_AGO = timedelta(days=10)  # far enough from now that what goes on does not get there


@dataclass(frozen=True)
class Stream:
    """Bodies of each sender in their turn; all may send the same ones if there is one list."""

    senders: list[list[bytes]]
    records: int
    """Count of them in each body."""
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


@cache
def onward() -> Stream:
    """A fleet of sixteen bodies at each instant, a quarter of it from each sender, that goes on."""
    return Stream(*_going_on(BODIES, fleet.BODY_RECORDS))


def truck_turns() -> Stream:
    """Trucks of the last minutes, again and again."""
    start = datetime.now(UTC) - timedelta(seconds=(TRUCK_BODIES + 10) * trucks.STEP_SECONDS)
    return Stream([list(trucks.bodies(TRUCK_BODIES, start))], trucks.BODY_RECORDS)


@cache
def small() -> Stream:
    """Ten records of ten links in each body, as a gateway sends them, that go on."""
    return Stream(*_going_on(_SMALL_BODIES, SMALL_RECORDS))


def small_trucks() -> Stream:
    """Ten records of trucks in each body, again and again."""
    start = datetime.now(UTC) - timedelta(minutes=10)
    rows = trucks.rows(start)
    bodies = [
        ("[" + ",".join(next(rows) for _ in range(SMALL_RECORDS)) + "]").encode()
        for _ in range(_SMALL_BODIES)
    ]
    return Stream([bodies[sender::SENDERS] for sender in range(SENDERS)], SMALL_RECORDS)


@cache
def messages(records: int) -> Stream:
    """Messages of so many records of a thousand links for each sender, that go on."""
    bodies = records // fleet.BODY_RECORDS
    count = max(2, INSTANTS // bodies)
    senders = []
    for sender in range(SENDERS):
        walk = fleet.Walk(fleet.BODY_RECORDS, first=sender * fleet.BODY_RECORDS)
        rows = (rows_of(walk.body(time)) for time in _instants(bodies * count))
        senders.append(
            [
                request(itertools.chain.from_iterable(itertools.islice(rows, bodies)))
                for _ in range(count)
            ]
        )
    return Stream(senders, records, bodies * count * fleet.STEP_SECONDS)


@cache
def stations(count: int, records: int) -> Stream:
    """Messages of each ground station that go on: so many seconds of ten links in each."""
    links = 10
    seconds = records // links
    senders = []
    for number in range(count):
        walk = fleet.Walk(links, first=number * links)
        times = [fleet.START + timedelta(seconds=second) for second in range(2 * seconds)]
        rows = [row for time in times for row in rows_of(walk.body(time))]
        senders.append([request(rows[:records]), request(rows[records:])])
    return Stream(senders, records, 2 * seconds)


def _going_on(bodies: int, records: int) -> tuple[list[list[bytes]], int, int]:
    """Senders of so many bodies at each instant, each of links of its own."""
    walks = [fleet.Walk(records, first=number * records) for number in range(bodies)]
    senders: list[list[bytes]] = [[] for _ in range(SENDERS)]
    for time in _instants(INSTANTS):
        for number, walk in enumerate(walks):
            senders[number % SENDERS].append(walk.body(time))
    return senders, records, INSTANTS * fleet.STEP_SECONDS


def _instants(count: int) -> list[datetime]:
    time = datetime.now(UTC) - _AGO
    start = time.replace(second=time.second // 10 * 10, microsecond=0)
    return [start + timedelta(seconds=step * fleet.STEP_SECONDS) for step in range(count)]


AGAIN, ONWARD, TRUCKS, SMALL, SMALL_TRUCKS = "again", "onward", "trucks", "small", "small-trucks"
SENT: dict[str, Callable[[], Stream]] = {
    AGAIN: again,
    ONWARD: onward,
    TRUCKS: truck_turns,
    SMALL: small,
    SMALL_TRUCKS: small_trucks,
}
