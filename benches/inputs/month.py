"""A month of a fleet: 100 entities, 30 days, a record each ten seconds: 26 million rows.

Bodies hold an hour of one entity, as gateways send them that were offline for a while.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast._core import Plane

FIELDS = ("azimuth_deg", "elevation_deg", "slant_range_km", "snr_db", "utilization")
STEP_SECONDS = 10
HOUR_SECONDS = 3_600
SECOND_NS = 1_000_000_000
HOUR_NS = HOUR_SECONDS * SECOND_NS
DAY_NS = 24 * HOUR_NS


@dataclass(frozen=True)
class Month:
    """So many entities over so many days, which end with a whole hour not long ago."""

    entities: int
    days: int
    end: datetime

    @property
    def ids(self) -> list[str]:
        """The entities' names."""
        return [f"link-{number:04d}" for number in range(self.entities)]

    @property
    def end_ns(self) -> int:
        """Nanoseconds since 1970 at its end."""
        return int(self.end.timestamp()) * SECOND_NS

    @property
    def start_ns(self) -> int:
        """Nanoseconds since 1970 at its start."""
        return self.end_ns - self.days * DAY_NS

    @property
    def rows_per_entity(self) -> int:
        """Rows of each entity."""
        return self.days * 24 * HOUR_SECONDS // STEP_SECONDS

    def bodies(self) -> Iterator[tuple[int, bytes]]:
        """The time at which a body arrives, and the body: hour by hour, each entity in turn."""
        links = [_Link(name, number) for number, name in enumerate(self.ids)]
        for hour in range(self.days * 24, 0, -1):
            start = self.end - timedelta(hours=hour)
            now_ns = self.end_ns - (hour - 1) * HOUR_NS
            for link in links:
                yield now_ns, f"[{','.join(link.hour(start))}]".encode()

    def fill(self, plane: Plane, uncompacted: Plane | None = None) -> int:
        """Writes everything and compacts each hour, as the maintenance process would.

        `uncompacted` gets the same and stays as it is written. Returns the bytes of the JSON.
        """
        received = 0
        for number, (now_ns, body) in enumerate(self.bodies(), 1):
            plane.write_json(body, now_ns=now_ns)
            if uncompacted is not None:
                uncompacted.write_json(body, now_ns=now_ns)
            received += len(body)
            if number % self.entities == 0:
                plane.compact(now_ns=now_ns)
        plane.compact(whole=True, now_ns=self.end_ns)
        return received


def until_now(entities: int, days: int) -> Month:
    """A month that ends with the last whole hour."""
    return Month(entities, days, datetime.now(UTC).replace(minute=0, second=0, microsecond=0))


class _Link:
    """The random walk of one entity, in the decimals of its instruments."""

    def __init__(self, name: str, number: int) -> None:
        self._dice = random.Random(number)
        self._tags = f'{{"entity_id":"{name}","ground_station":"gs-{number % 40:03d}"}}'
        roll = self._dice.random
        self._state = [360 * roll(), 5 + 80 * roll(), 600 + 1_400 * roll(), 4 + 16 * roll(), roll()]

    def hour(self, start: datetime) -> Iterator[str]:
        """A record each ten seconds, nearly."""
        roll, state = self._dice.random, self._state
        for second in range(0, HOUR_SECONDS, STEP_SECONDS):
            at = start + timedelta(seconds=second, milliseconds=int(roll() * 10))
            state[0] = (state[0] + 2.4 * roll() - 0.8) % 360
            state[1] = min(max(state[1] + 1.2 * roll() - 0.6, 5.0), 90.0)
            state[2] = min(max(state[2] + 16 * roll() - 8, 550.0), 2_600.0)
            state[3] = min(max(state[3] + 0.8 * roll() - 0.4, -3.0), 25.0)
            state[4] = min(max(state[4] + 0.04 * roll() - 0.02, 0.0), 1.0)
            yield (
                f'{{"measurement":"link","time":"{at:%Y-%m-%dT%H:%M:%S}.'
                f'{at.microsecond // 1000:03d}Z","tags":{self._tags},"fields":{{'
                f'"azimuth_deg":{state[0]:.2f},"elevation_deg":{state[1]:.2f},'
                f'"slant_range_km":{state[2]:.1f},"snr_db":{state[3]:.1f},'
                f'"utilization":{state[4]:.3f}}}}}'
            )
