"""A fleet of another shape, after the "iot" workload of the Time Series Benchmark Suite (TSBS).

Trucks send two measurements in turn, of seven and of three fields, in no order that holds from one
body to the next. Some rows never come, some are overtaken, some come late; some lack a field or a
tag; and trucks that were never seen take the places of others. The chances are those of TSBS; the
measurements have names that can be read.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY_RECORDS = 1_000
TRUCKS = 500
READINGS, DIAGNOSTICS = "telemetry", "link"
STEP_SECONDS = 10
START = datetime(2026, 3, 1, tzinfo=UTC)

# Rows in a batch that is missing or late as a whole, and how many steps it is late at most.
_BATCH_ROWS = 10
_LATE_STEPS = 6
_BATCH_MISSING, _BATCH_LATE = 0.01, 0.05
_ROW_MISSING, _ROW_OVERTAKEN, _OVERTAKEN_COMES = 0.1, 0.3, 0.5
_TAG_MISSING, _FIELD_MISSING = 0.01, 0.1
_LOAD_CHANGES = 0.05

_DRIVERS = ("Derek", "Rodney", "Albert", "Andy", "Seth", "Trish")
_FLEETS = ("East", "West", "North", "South")
_MODELS = (("F-150", 2000, 200, 15), ("G-2000", 5000, 300, 19), ("H-2", 1500, 150, 12))
_VERSIONS = ("v1.0", "v1.5", "v2.0", "v2.3")


class _Truck:
    """Tags and random walks of one truck."""

    def __init__(self, number: int, dice: random.Random) -> None:
        self._dice = dice
        model, load, fuel, consumption = dice.choice(_MODELS)
        self.tags = [
            f'"entity_id":"truck_{number}"',
            f'"fleet":"{dice.choice(_FLEETS)}"',
            f'"driver":"{dice.choice(_DRIVERS)}"',
            f'"model":"{model}"',
            f'"device_version":"{dice.choice(_VERSIONS)}"',
            f'"load_capacity":"{load}"',
            f'"fuel_capacity":"{fuel}"',
            f'"nominal_fuel_consumption":"{consumption}"',
        ]
        roll = dice.random
        self._readings = [90 * roll(), 180 * roll(), 500 * roll(), 0.0, 360 * roll(), 0.0, 25.0]
        self._fuel, self._load, self._status = 1.0, 5_000 * roll(), 0.0

    def _walk(self, value: float, width: float, low: float, high: float) -> float:
        return min(max(value + width * (2 * self._dice.random() - 1), low), high)

    def readings(self) -> list[str]:
        """The fields of the next row of the first measurement."""
        latitude, longitude, elevation, velocity, heading, grade, consumption = self._readings
        self._readings = [
            self._walk(latitude, 0.005, -90, 90),
            self._walk(longitude, 0.005, -180, 180),
            self._walk(elevation, 10, 0, 5_000),
            self._walk(velocity, 10, 0, 100),
            self._walk(heading, 5, 0, 360),
            self._walk(grade, 5, 0, 100),
            self._walk(consumption, 5, 0, 50),
        ]
        latitude, longitude, elevation, velocity, heading, grade, consumption = self._readings
        return [
            f'"latitude":{round(latitude, 5)}',
            f'"longitude":{round(longitude, 5)}',
            f'"elevation":{int(elevation)}',
            f'"velocity":{int(velocity)}',
            f'"heading":{int(heading)}',
            f'"grade":{int(grade)}',
            f'"fuel_consumption":{round(consumption, 1)}',
        ]

    def diagnostics(self) -> list[str]:
        """The fields of the next row of the second measurement."""
        dice = self._dice
        self._fuel -= 0.001 * dice.random()
        if self._fuel <= 0:
            self._fuel = 1.0
        if dice.random() < _LOAD_CHANGES:
            self._load = 5_000 * dice.random()
        self._status = min(max(self._status + dice.gauss(0, 1), 0.0), 5.0)
        return [
            f'"fuel_state":{round(self._fuel, 1)}',
            f'"current_load":{int(self._load)}',
            f'"status":{int(self._status)}',
        ]


class Trucks:
    """A number of trucks, of which a share is replaced by new ones with each step."""

    def __init__(self, trucks: int = TRUCKS, *, joining: float = 0.05, seed: int = 42) -> None:
        self._dice = random.Random(seed)
        self._trucks = [_Truck(number, self._dice) for number in range(trucks)]
        self._numbers = itertools.count(trucks)
        self._joining = joining
        self._joined = 0.0

    def rows(self, start: datetime) -> Iterator[str]:
        """Records without end, in the order in which they arrive."""
        dice = self._dice
        late: list[tuple[int, list[str]]] = []
        for step in itertools.count():
            due = [rows for at, rows in late if at <= step]
            late = [(at, rows) for at, rows in late if at > step]
            sent = self._step(start + timedelta(seconds=step * STEP_SECONDS))
            while batch := list(itertools.islice(sent, _BATCH_ROWS)):
                chance = dice.random()
                if chance < _BATCH_MISSING:
                    continue
                if chance < _BATCH_MISSING + _BATCH_LATE:
                    late.append((step + dice.randint(1, _LATE_STEPS), batch))
                else:
                    yield from batch
            yield from itertools.chain.from_iterable(due)

    def _step(self, time: datetime) -> Iterator[str]:
        """The rows of one instant, less some, some of them overtaken by others."""
        dice = self._dice
        self._replace()
        dice.shuffle(self._trucks)
        overtaken: deque[str] = deque()
        for row in itertools.chain.from_iterable(self._pair(each, time) for each in self._trucks):
            if overtaken and dice.random() < _OVERTAKEN_COMES:
                yield overtaken.popleft()
            if dice.random() < _ROW_MISSING:
                continue
            if dice.random() < _ROW_OVERTAKEN:
                overtaken.append(row)
            else:
                yield row
        yield from overtaken

    def _replace(self) -> None:
        self._joined += self._joining * len(self._trucks)
        for at in range(int(self._joined)):
            self._trucks[at] = _Truck(next(self._numbers), self._dice)
        self._joined %= 1

    def _pair(self, truck: _Truck, time: datetime) -> tuple[str, str]:
        return (
            self._row(READINGS, truck.tags, truck.readings(), time),
            self._row(DIAGNOSTICS, truck.tags, truck.diagnostics(), time),
        )

    def _row(self, measurement: str, tags: list[str], fields: list[str], time: datetime) -> str:
        dice = self._dice
        if dice.random() < _FIELD_MISSING:
            fields.pop(dice.randrange(len(fields)))
        if dice.random() < _TAG_MISSING:
            # Any but the entity's name.
            gap = dice.randrange(1, len(tags))
            tags = tags[:gap] + tags[gap + 1 :]
        return (
            f'{{"measurement":"{measurement}","time":"{time:%Y-%m-%dT%H:%M:%SZ}",'
            f'"tags":{{{",".join(tags)}}},"fields":{{{",".join(fields)}}}}}'
        )


def bodies(
    count: int, start: datetime = START, *, trucks: int = TRUCKS, joining: float = 0.05
) -> Iterator[bytes]:
    """Bodies of `BODY_RECORDS` records; with each ten seconds a share of the trucks is new."""
    rows = Trucks(trucks, joining=joining).rows(start)
    for _ in range(count):
        yield ("[" + ",".join(itertools.islice(rows, BODY_RECORDS)) + "]").encode()


def conflicting(body: bytes) -> bytes:
    """The same records with texts for two of the numbers.

    Once it was written, `body` is refused after it was parsed to the end, its series known.
    """
    return re.sub(rb'"(latitude|fuel_state)":[-0-9.]+', rb'"\1":""', body)
