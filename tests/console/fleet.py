"""A fleet as an operator sees one: some tenants, ten thousand terminals, links with a hole."""

from __future__ import annotations

import math
import os
import random
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fleetcast.engine import encode_records
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.service.service import create_key, prepare, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.service.service import Service

TERMINALS = 10_000
OTHERS = ("lighthouse", "quay-7", "pilot", "buoys", "tugs-east", "tugs-west")
LINK_HOURS = 8
HOLE = range(150, 185)
"""Minutes before now of which no link says anything."""
POOL_DAYS = 12
_BATCH = 1_000
_LINKS = 6
_POOLS = 3


def terminals(now: datetime, count: int = TERMINALS) -> Iterator[dict]:
    dice = random.Random(7)
    for number in range(count):
        yield {
            "measurement": "telemetry",
            "time": (now - timedelta(seconds=dice.randrange(1, 240))).isoformat(),
            "tags": {
                "entity_id": f"ut-{number:05}",
                "entity_type": "terminal",
                "region": ("north", "west", "south")[number % 3],
            },
            "fields": {
                "downlink_mbps": round(dice.uniform(20, 240), 1),
                "uplink_mbps": round(dice.uniform(2, 30), 1),
                "snr_db": round(dice.gauss(9, 1.5), 2),
                "temperature_c": round(dice.gauss(31, 6), 1),
                "obstructed": dice.random() < 0.04,
            },
        }


def links(now: datetime) -> Iterator[dict]:
    dice = random.Random(8)
    fade = [0.0] * _LINKS
    for minute in range(LINK_HOURS * 60, 0, -1):
        for number in range(_LINKS):
            for part in range(4):
                fade[number] = 0.992 * fade[number] + dice.gauss(0, 0.16)
                if minute in HOLE:
                    continue
                time = now - timedelta(minutes=minute) + timedelta(seconds=15 * part)
                yield {
                    "measurement": "link",
                    "time": time.isoformat(),
                    "tags": {"entity_id": f"link-{number}", "entity_type": "link"},
                    "fields": {
                        "snr_db": round(21 + fade[number] + dice.gauss(0, 0.25), 2),
                        "received_dbm": round(-62 + fade[number] + dice.gauss(0, 0.15), 2),
                        "modem_temperature_c": round(38 + 4 * math.sin(minute / 80 + number), 2),
                        "throughput_mbps": round(410 + 9 * fade[number] + dice.gauss(0, 6), 1),
                    },
                }


def beacons(now: datetime) -> Iterator[dict]:
    """One that writes each minute, one that fell silent, and values of every size."""
    for minute in range(170, 0, -1):
        for name, silent in (("beacon-1", 0), ("beacon-2", 90)):
            if minute > silent:
                yield {
                    "measurement": "beacon",
                    "time": (now - timedelta(minutes=minute)).isoformat(),
                    "tags": {"entity_id": name},
                    "fields": {
                        "level": 7.0 + 2 * math.sin(minute / 20),
                        "total_bytes": 4.2e12 + 1e9 * (170 - minute),
                        "leak": 3e-6 * (1 + math.sin(minute / 9)),
                    },
                }


def ships(now: datetime) -> Iterator[dict]:
    """Sixty on the North Sea, one of which has not been heard of for two hours."""
    for number in range(60):
        yield {
            "measurement": "ship",
            "time": (now - timedelta(minutes=120 if number == 7 else 1)).isoformat(),
            "tags": {"entity_id": f"ship-{number:02}", "flag": ("dk", "no")[number % 2]},
            "fields": {
                "latitude": 54 + 0.08 * number,
                "longitude": 3 + 2 * math.sin(number),
                "knots": float(number % 20),
            },
        }


def pools(now: datetime) -> Iterator[dict]:
    dice = random.Random(9)
    window = now.replace(minute=now.minute - now.minute % 15, second=0, microsecond=0)
    for step in range(POOL_DAYS * 96, 0, -1):
        for number in range(_POOLS):
            day = 1 + 0.6 * math.sin(2 * math.pi * step / 96 + number)
            yield {
                "measurement": "pool_interval",
                "time": (window - step * timedelta(minutes=15)).isoformat(),
                "tags": {"entity_id": f"pool-{number}", "region": f"r{number}"},
                "fields": {"offered_bytes": round(4e9 * day * math.exp(dice.gauss(0, 0.12)))},
            }


def load(data: Path, tenant: str, records: Iterator[dict]) -> None:
    with opened(DataDirectory(data), os.environ) as installation:
        account_id = installation.tenants.get(tenant).account_id
        plane = installation.engine.plane(account_id, tenant)
        batch: list[dict] = []
        for record in records:
            batch.append(record)
            if len(batch) == _BATCH:
                plane.write_json(encode_records(batch))
                batch.clear()
        if batch:
            plane.write_json(encode_records(batch))


def operator_token(data: Path, name: str = "") -> str:
    with opened(DataDirectory(data), os.environ) as installation:
        return str(installation.operators.create(name=name).text)


@contextmanager
def fleet(data: Path, *options: str, terminal_count: int = TERMINALS) -> Iterator[Service]:
    """A service with the fleet; `token` opens its console."""
    key = prepare(data, "harbour")
    with opened(DataDirectory(data), os.environ) as installation:
        for name in OTHERS:
            installation.tenants.create(name)
        installation.tenants.change("quay-7", live_ingest=False)
        installation.tenants.change("pilot", disabled=True)
    now = datetime.now(UTC)
    load(data, "harbour", terminals(now, terminal_count))
    load(data, "harbour", links(now))
    load(data, "harbour", beacons(now))
    load(data, "harbour", ships(now))
    load(data, "lighthouse", pools(now))
    for number, name in enumerate(OTHERS[3:]):
        load(data, name, terminals(now, 40 * (number + 2)))
    service = start(data, key, "--admin", "127.0.0.1:0", *options)
    service.data, service.token = data, operator_token(data, "Ada")
    service.other_key = create_key(data, "lighthouse")
    try:
        yield service
    finally:
        service.stop()
