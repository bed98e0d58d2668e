"""A small store to try things on: a day of ten links at two sites, a sample a minute."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fleetcast import Plane, encode_records

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)


def small_fleet() -> Plane:
    """Returns a store in memory; `Engine` keeps stores in a folder."""
    plane = Plane.in_memory("acme")
    for minute in range(24 * 60):
        plane.write_json(encode_records(_records(minute)))
    return plane


def _records(minute: int) -> Iterator[dict[str, object]]:
    for link in range(10):
        yield {
            "measurement": "link",
            "time": DAY + timedelta(minutes=minute),
            "tags": {"entity_id": f"link-{link}", "site": ["north", "south"][link % 2]},
            "fields": {
                "snr_db": 12 + link / 10 + 3 * math.sin(math.tau * (minute / 1440 + link / 10)),
                "up": minute % 97 != link,
            },
        }
