"""A fleet after the "iot" workload of the Time Series Benchmark Suite (TSBS).

Trucks send two measurements in turn, one of seven fields and one of three. Some rows never come,
some are overtaken and some come late. Some rows lack a field or a tag. New trucks take the places
of others. The chances are those of TSBS; the measurements have names that fleetcast reads. The same
seed gives the same rows.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from typing import TYPE_CHECKING

from fleetcast.bench.rows import NS_PER_SECOND, RowNames, SentRow

if TYPE_CHECKING:
    from collections.abc import Iterator

READINGS, DIAGNOSTICS = "telemetry", "link"
FIELDS = {
    READINGS: (
        *("latitude", "longitude", "elevation", "velocity"),
        *("heading", "grade", "fuel_consumption"),
    ),
    DIAGNOSTICS: ("fuel_state", "current_load", "status"),
}
TAGS = (
    *("entity_id", "fleet", "driver", "model", "device_version"),
    *("load_capacity", "fuel_capacity", "nominal_fuel_consumption"),
)
NAMES = RowNames(FIELDS, TAGS)
STEP_SECONDS = 10
START = 1_772_323_200
"""The first of March 2026. Reads name their windows, so any past time will do."""

# Rows in a batch that is missing or late as a whole, and the most steps that it is late.
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
        texts = (
            *(f"truck_{number}", dice.choice(_FLEETS), dice.choice(_DRIVERS), model),
            *(dice.choice(_VERSIONS), str(load), str(fuel), str(consumption)),
        )
        self.tags = list(zip(TAGS, texts, strict=True))
        roll = dice.random
        self._readings = [90 * roll(), 180 * roll(), 500 * roll(), 0.0, 360 * roll(), 0.0, 25.0]
        self._fuel, self._load, self._status = 1.0, 5_000 * roll(), 0.0

    def _walk(self, value: float, width: float, low: float, high: float) -> float:
        return min(max(value + width * (2 * self._dice.random() - 1), low), high)

    def readings(self) -> list[tuple[str, float]]:
        """Returns the fields of the next row of the first measurement."""
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
        values = (
            *(round(latitude, 5), round(longitude, 5), int(elevation), int(velocity)),
            *(int(heading), int(grade), round(consumption, 1)),
        )
        return list(zip(FIELDS[READINGS], values, strict=True))

    def diagnostics(self) -> list[tuple[str, float]]:
        """Returns the fields of the next row of the second measurement."""
        dice = self._dice
        self._fuel -= 0.001 * dice.random()
        if self._fuel <= 0:
            self._fuel = 1.0
        if dice.random() < _LOAD_CHANGES:
            self._load = 5_000 * dice.random()
        self._status = min(max(self._status + dice.gauss(0, 1), 0.0), 5.0)
        values = (round(self._fuel, 1), int(self._load), int(self._status))
        return list(zip(FIELDS[DIAGNOSTICS], values, strict=True))


class Trucks:
    """A number of trucks. With each step, new trucks replace a share of them.

    Example: with `joining=0.01`, 5 of 500 trucks are new at each step.
    """

    def __init__(self, trucks: int, *, joining: float, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - no secret
        self._trucks = [_Truck(number, self._dice) for number in range(trucks)]
        self._numbers = itertools.count(trucks)
        self._joining = joining
        self._joined = 0.0

    def rows(self, start: int) -> Iterator[SentRow]:
        """Yields records without end, in their order of arrival; `start` is in seconds."""
        dice = self._dice
        late: list[tuple[int, list[SentRow]]] = []
        for step in itertools.count():
            due = [rows for at, rows in late if at <= step]
            late = [(at, rows) for at, rows in late if at > step]
            sent = self._step(start + step * STEP_SECONDS)
            while batch := list(itertools.islice(sent, _BATCH_ROWS)):
                chance = dice.random()
                if chance < _BATCH_MISSING:
                    continue
                if chance < _BATCH_MISSING + _BATCH_LATE:
                    late.append((step + dice.randint(1, _LATE_STEPS), batch))
                else:
                    yield from batch
            yield from itertools.chain.from_iterable(due)

    def _step(self, time: int) -> Iterator[SentRow]:
        """Returns the rows of one time. Some rows are missing, and some are overtaken by others."""
        dice = self._dice
        self._replace()
        dice.shuffle(self._trucks)
        overtaken: deque[SentRow] = deque()
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

    def _pair(self, truck: _Truck, time: int) -> tuple[SentRow, SentRow]:
        return (
            self._row(READINGS, truck.tags, truck.readings(), time),
            self._row(DIAGNOSTICS, truck.tags, truck.diagnostics(), time),
        )

    def _row(
        self,
        measurement: str,
        tags: list[tuple[str, str]],
        fields: list[tuple[str, float]],
        time: int,
    ) -> SentRow:
        dice = self._dice
        if dice.random() < _FIELD_MISSING:
            fields.pop(dice.randrange(len(fields)))
        if dice.random() < _TAG_MISSING:
            # a tag other than the entity's name
            gap = dice.randrange(1, len(tags))
            tags = tags[:gap] + tags[gap + 1 :]
        return SentRow(measurement, time * NS_PER_SECOND, tags, fields)
