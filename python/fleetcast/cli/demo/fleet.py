"""Measurements of a small fleet. Every run makes the same values, up to a minute that is given.

The signal of one link fades in rain, one link is silent, and a pool is at its capacity. So each
view of the console has something to show.
"""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Record = dict[str, object]

LINKS = tuple(f"link-{number}" for number in range(1, 7))
FADING_LINK, SILENT_LINK = LINKS[2], LINKS[5]
SATELLITES = ("sat-1", "sat-2", "sat-3")
STATIONS = {"gs-north": (69.66, 18.94, 0.1), "gs-south": (-33.15, -70.67, 0.7)}
POOLS = ("pool-east", "pool-west")
FULL_POOL = POOLS[1]

_LINK_MINUTES = 180
_SILENT_MINUTES = 25
_FADE_MINUTES = 30  # so long before now the rain begins
_FADE_DB_PER_MINUTE = 0.35
_FADE_DB_MAX = 16.0
_SLOW_STEP_MINUTES = 5
_POOL_STEP = timedelta(minutes=15)
_POOL_STEPS = 8 * 96
_SEED = 20_260_101
_EARTH_KM = 6371.0
_ORBIT_KM = 20_200.0
_ORBIT_MINUTES = 720
_PASS_MINUTES = 480
_PASS_DEG = 120.0
_ACROSS_DEG = 4.0
"""How far from its zenith a link sees a satellite pass, by rank of the link."""
_ZENITH_DB = 0.5
"""Loss in the air straight above."""
_CAPACITY_BYTES = 13_000_000_000


def generated_fleet(now: datetime) -> Iterator[Record]:
    """Yields three hours of links, satellites, stations and weather, and eight days of pools."""
    noise = _noise(_SEED)
    newest = now.replace(second=0, microsecond=0)
    window = newest - timedelta(minutes=newest.minute % 15)
    for step in range(_POOL_STEPS):
        time = window - (_POOL_STEPS - step) * _POOL_STEP
        yield from (_pool(time, step, rank, noise) for rank in range(len(POOLS)))
    for minute in range(_LINK_MINUTES):
        time = newest - timedelta(minutes=_LINK_MINUTES - 1 - minute)
        slow = (_LINK_MINUTES - 1 - minute) % _SLOW_STEP_MINUTES == 0
        yield from _moment(time, minute, noise, slow=slow)


def fleet_at(now: datetime, newest: datetime) -> Iterator[Record]:
    """Yields the records of an instant after `newest`, the end of the generated fleet."""
    minute = _LINK_MINUTES - 1 + (now - newest).total_seconds() / 60
    yield from _moment(now, minute, _noise(minute), slow=True)


def _noise(seed: float) -> random.Random:
    return random.Random(seed)  # noqa: S311 - repeatable, not secret


def _moment(time: datetime, minute: float, noise: random.Random, *, slow: bool) -> Iterator[Record]:
    for rank, name in enumerate(LINKS):
        if name != SILENT_LINK or minute < _LINK_MINUTES - _SILENT_MINUTES:
            yield _link(time, minute, rank, noise)
    yield from (_satellite(time, minute, rank) for rank in range(len(SATELLITES)))
    if slow:
        yield from _stations(time, minute, noise)


def record(
    measurement: str, time: datetime, tags: dict[str, str], fields: dict[str, object]
) -> Record:
    """Returns a record as the JSON of a write has it."""
    return {"measurement": measurement, "time": time.isoformat(), "tags": tags, "fields": fields}


def _link(time: datetime, minute: float, rank: int, noise: random.Random) -> Record:
    elevation, azimuth, reach = _look(minute, rank)
    wet_minutes = max(0.0, minute - (_LINK_MINUTES - _FADE_MINUTES))
    rain_db = min(_FADE_DB_PER_MINUTE * wet_minutes, _FADE_DB_MAX)
    fade_db = rain_db if LINKS[rank] == FADING_LINK else 0.0
    air_db = _ZENITH_DB / math.sin(math.radians(elevation))
    snr_db = 24 - 20 * math.log10(reach / _ORBIT_KM) - air_db - fade_db + noise.gauss(0, 0.3)
    fields: dict[str, object] = {
        "snr_db": round(snr_db, 2),
        "elevation_deg": round(elevation, 3),
        "azimuth_deg": round(azimuth, 3),
        "slant_range_km": round(reach, 3),
        "frequency_ghz": 11.7,
        "bandwidth_mhz": 250.0,
        "polarization": "RHCP",
    }
    tags = {"entity_id": LINKS[rank], "entity_type": "link"}
    return record("link", time, tags, fields)


def _look(minute: float, rank: int) -> tuple[float, float, float]:
    """Elevation and azimuth in degrees, and distance in km, of the satellite that a link follows.

    The satellite passes from west to east. When it sets, the next satellite rises.
    """
    passed = (minute / _PASS_MINUTES + rank / len(LINKS)) % 1
    along = math.radians(_PASS_DEG * (passed - 0.5))
    across = math.radians(_ACROSS_DEG * (rank + 1))
    radius = _EARTH_KM + _ORBIT_KM
    east = radius * math.sin(along) * math.cos(across)
    north = radius * math.sin(across)
    up = radius * math.cos(along) * math.cos(across) - _EARTH_KM
    reach = math.hypot(east, north, up)
    azimuth = math.degrees(math.atan2(east, north)) % 360
    return math.degrees(math.asin(up / reach)), azimuth, reach


def _satellite(time: datetime, minute: float, rank: int) -> Record:
    turn = 2 * math.pi * (minute / _ORBIT_MINUTES + rank / len(SATELLITES))
    longitude = (math.degrees(turn) - minute / 4 + 180) % 360 - 180
    fields: dict[str, object] = {
        "lat": round(53 * math.sin(turn), 4),
        "lon": round(longitude, 4),
        "altitude_km": _ORBIT_KM,
        "utilization": round(0.5 + 0.4 * math.sin(turn / 2), 3),
        "in_sunlight": math.cos(turn) > 0,
    }
    tags = {"entity_id": SATELLITES[rank], "entity_type": "satellite"}
    return record("satellite", time, tags, fields)


def _stations(time: datetime, minute: float, noise: random.Random) -> Iterator[Record]:
    for name, (latitude, longitude, altitude) in STATIONS.items():
        tags = {"entity_id": name, "entity_type": "ground_station"}
        position: dict[str, object] = {"lat": latitude, "lon": longitude, "altitude_km": altitude}
        yield record("ground_station", time, tags, position | {"online": True})
        rain = max(0.0, 4 * math.sin(minute / 40) + noise.gauss(0, 0.5))
        weather: dict[str, object] = {
            "rain_mm_h": round(rain, 2),
            "temperature_c": round(12 + 6 * math.sin(minute / 90) + noise.gauss(0, 0.2), 2),
        }
        yield record("weather", time, tags, weather)


def _pool(time: datetime, step: int, rank: int, noise: random.Random) -> Record:
    day = 1 + 0.6 * math.sin(2 * math.pi * step / 96 + rank)
    week = 0.8 if (step // 96) % 7 >= 5 else 1.0  # noqa: PLR2004 - the two days of a weekend
    offered = 4e9 * (rank + 1) * day * week * math.exp(noise.gauss(0, 0.15))
    tags = {"entity_id": POOLS[rank], "entity_type": "pool", "region": POOLS[rank][5:]}
    fields: dict[str, object] = {
        "offered_bytes": round(offered),
        "capacity_bytes": _CAPACITY_BYTES,
    }
    return record("pool_interval", time, tags, fields)
