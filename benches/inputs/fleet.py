"""The fleet that every benchmark measures on: the same bodies everywhere.

Links to satellites, each entity on a random walk of its own. A body holds one record of each of
`BODY_RECORDS` entities, in the order of the entities, ten seconds after the body before: what a
gateway sends that polls its links in turn. Numbers have the decimals of the instruments they come
from.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BODY_RECORDS = 1_000
FIELDS = ("azimuth_deg", "elevation_deg", "slant_range_km", "snr_db", "utilization")
MEASUREMENT = "link"
STEP_SECONDS = 10
START = datetime(2026, 3, 1, tzinfo=UTC)


class Walk:
    """The links of `entities` entities, numbered from `first`."""

    def __init__(self, entities: int, *, first: int = 0, seed: int = 42) -> None:
        self._dice = random.Random(seed + first)
        roll = self._dice.random
        self._tags = [_tags(number) for number in range(first, first + entities)]
        self._state = [
            [360 * roll(), 5 + 80 * roll(), 600 + 1_400 * roll(), 4 + 16 * roll(), roll()]
            for _ in range(entities)
        ]

    def body(self, start: datetime) -> bytes:
        """One record of every entity, from `start` on, over nearly ten seconds."""
        roll = self._dice.random
        spacing_ms = 9_990 / len(self._state)
        records = []
        for at, (tags, state) in enumerate(zip(self._tags, self._state, strict=True)):
            time = start + timedelta(milliseconds=int((at + roll()) * spacing_ms))
            state[0] = (state[0] + 2.4 * roll() - 0.8) % 360
            state[1] = min(max(state[1] + 1.2 * roll() - 0.6, 5.0), 90.0)
            state[2] = min(max(state[2] + 16 * roll() - 8, 550.0), 2_600.0)
            state[3] = min(max(state[3] + 0.8 * roll() - 0.4, -3.0), 25.0)
            state[4] = min(max(state[4] + 0.04 * roll() - 0.02, 0.0), 1.0)
            azimuth, elevation, slant, snr, utilization = state
            records.append(
                f'{{"measurement":"link","time":"{time:%Y-%m-%dT%H:%M:%S}.'
                f'{time.microsecond // 1000:03d}Z","tags":{tags},"fields":{{'
                f'"azimuth_deg":{azimuth:.2f},"elevation_deg":{elevation:.2f},'
                f'"slant_range_km":{slant:.1f},"snr_db":{snr:.1f},'
                f'"utilization":{utilization:.3f}}}}}'
            )
        return ("[" + ",".join(records) + "]").encode()


def _tags(number: int) -> str:
    return (
        f'{{"entity_id":"{entity_id(number)}","entity_type":"satellite_link",'
        f'"ground_station":"gs-{number % 40:03d}.northern",'
        f'"beam":"ka-{number % 256:04d}-downlink"}}'
    )


def entity_id(number: int) -> str:
    """Name of an entity."""
    return f"satellite-link-{number:06d}"


def bodies(count: int, start: datetime = START) -> Iterator[bytes]:
    """Bodies of `BODY_RECORDS` records, each entity once in each, ten seconds apart."""
    walk = Walk(BODY_RECORDS)
    for step in range(count):
        yield walk.body(start + timedelta(seconds=step * STEP_SECONDS))


def buffered_bodies(count: int, start: datetime = START) -> Iterator[bytes]:
    """Bodies with ten records of each of a tenth of the entities, oldest first."""
    entities = BODY_RECORDS // 10
    walk = Walk(entities)
    for step in range(count):
        times = [start + timedelta(seconds=(step * 10 + at) * STEP_SECONDS) for at in range(10)]
        yield b"[" + b",".join(walk.body(time)[1:-1] for time in times) + b"]"


def wide_bodies(entities: int, start: datetime = START) -> Iterator[bytes]:
    """One record of each of many entities, `BODY_RECORDS` to a body."""
    for first in range(0, entities, BODY_RECORDS):
        yield Walk(min(BODY_RECORDS, entities - first), first=first).body(start)


def with_entities_shuffled(bodies: Iterable[bytes], seed: int = 42) -> Iterator[bytes]:
    """The same bodies, the records of each in another order."""
    dice = random.Random(seed)
    for body in bodies:
        records = body[2:-2].split(b"},{")
        dice.shuffle(records)
        yield b"[{" + b"},{".join(records) + b"}]"


def with_fields_shuffled(bodies: Iterable[bytes], seed: int = 42) -> Iterator[bytes]:
    """The same bodies, the fields of each record in an order of their own."""
    dice = random.Random(seed)
    for body in bodies:
        records = []
        for record in body[2:-3].split(b"}},{"):
            head, start, fields = record.partition(b'"fields":{')
            shuffled = fields.split(b",")
            dice.shuffle(shuffled)
            records.append(head + start + b",".join(shuffled))
        yield b"[{" + b"}},{".join(records) + b"}}]"


def conflicting_body() -> bytes:
    """A body whose series are those of `bodies`, and whose last field is text instead.

    Once it was written, each of `bodies` is refused after it was parsed to the end: all that
    such a write takes is parsing, validation and columns, and next to nothing else.
    """
    fields = ",".join(f'"{name}":{0 if name != FIELDS[-1] else chr(34) * 2}' for name in FIELDS)
    records = [
        f'{{"measurement":"{MEASUREMENT}","time":"2026-01-01T00:00:00Z","tags":{_tags(number)},'
        f'"fields":{{{fields}}}}}'
        for number in range(BODY_RECORDS)
    ]
    return ("[" + ",".join(records) + "]").encode()
