"""Wide records: forty numbers each, as a device sends that reports all it measures at once."""

from __future__ import annotations

import random
from datetime import timedelta

from benches.inputs.fleet import START

ENTITIES = 100
FIELDS = 40


def rows(count: int) -> list[dict]:
    """Records of the entities in turn, a second apart."""
    dice = random.Random(42)
    return [
        {
            "measurement": "telemetry",
            "time": f"{START + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}",
            "tags": {
                "entity_id": f"device-{number % ENTITIES:06d}",
                "site": f"gs-{number % ENTITIES % 8:03d}",
            },
            "fields": {
                f"channel_{at:02d}": round(100 * dice.random(), at % 4) for at in range(FIELDS)
            },
        }
        for number in range(count)
    ]
