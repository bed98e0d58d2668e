"""Simulated constellation over real sites, for `GET /topology` if no sample was observed.

The simulation is off unless an operator asks for it, and never mixed with observations. Without
files it is a Walker delta pattern 53 deg: 72/6/1 at 550 km over eight cities. `simulation/` in the
data directory may hold `elements.tle` (two-line elements) and `stations.csv` (header
`name,latitude_deg,longitude_deg,altitude_m`) instead. Example of a line of stations:
`london,51.507,-0.128,11`.

Walker, J. G.: Satellite constellations, J. British Interplanetary Society 37, 1984.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.engine import format_time
from fleetcast.errors import OperatorError, reason
from fleetcast.forecast.geometry import (
    CircularOrbit,
    Radio,
    Satellite,
    Site,
    free_space_loss_db,
    geodetic,
    look,
    positions,
    read_elements,
    snr_db,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetcast.forecast.rows import Floats

MEASUREMENTS = ("ground_station", "link", "satellite")
"""Measurements that are simulated, in the order of answers."""

SATELLITES_MAX = 1_000
"""Larger files are sampled evenly, so that an answer stays small.

Example: of 2,500 satellites every third is simulated.
"""
ELEVATION_DEG_MIN = 25.0
STALE_DAYS = 14
"""Elements give positions to some kilometres for days, not for weeks."""

_ALTITUDE_KM, _INCLINATION_DEG = 550.0, 53.0
_PLANES, _PER_PLANE, _PHASING = 6, 12, 1
_EPOCH_NS = 946_728_000_000_000_000  # J2000
_DAY_NS = 86_400_000_000_000
_UNIX_JULIAN_DAYS = 2_440_587.5
_RADIO = Radio(frequency_ghz=11.7, bandwidth_mhz=250.0, eirp_dbw=36.7, g_over_t_db_k=9.2)
_STATIONS = {
    "london": Site(51.507, -0.128, 11),
    "madrid": Site(40.417, -3.704, 667),
    "nairobi": Site(-1.286, 36.817, 1_795),
    "new-york": Site(40.713, -74.006, 10),
    "sao-paulo": Site(-23.551, -46.633, 760),
    "singapore": Site(1.352, 103.82, 15),
    "sydney": Site(-33.869, 151.209, 19),
    "tokyo": Site(35.677, 139.65, 40),
}


@dataclass(frozen=True)
class Simulation:
    """Satellites by id, and the ground stations."""

    stations: dict[str, Site]
    satellites: dict[str, CircularOrbit | Satellite]
    sampled: bool

    def answer(
        self, as_of_ns: int, measurement: str | None
    ) -> tuple[list[dict[str, object]], dict[str, object]]:
        """Entities of one simulated measurement, or of all, and the `simulation` object."""
        issues: list[dict[str, str]] = []
        placed = {}
        for (satellite, orbit), position in zip(
            self.satellites.items(), self._positions(as_of_ns), strict=True
        ):
            if not np.isfinite(position).all():
                issues.append(_issue(satellite, "no_position", "its elements give no position"))
                continue
            placed[satellite] = position
            if isinstance(orbit, Satellite) and _age_days(orbit, as_of_ns) > STALE_DAYS:
                message = f"its elements are from more than {STALE_DAYS} days away"
                issues.append(_issue(satellite, "stale_elements", message))
        observed_at = format_time(as_of_ns)
        wanted = MEASUREMENTS if measurement is None else (measurement,)
        entities: list[dict[str, object]] = [
            {
                "measurement": name,
                "entity_id": entity_id,
                "observed_at": observed_at,
                "tags": {
                    "entity_id": entity_id,
                    "entity_type": name,
                    "data_source": "simulation",
                    **tags,
                },
                "fields": fields,
            }
            for name in wanted
            for entity_id, tags, fields in sorted(self._entities(name, placed), key=_id_bytes)
        ]
        return entities, {"sampled": self.sampled, "approximate": True, "issues": issues}

    def _entities(self, measurement: str, placed: dict[str, Floats]) -> Iterator[_Entity]:
        match measurement:
            case "ground_station":
                return self._ground_stations()
            case "link":
                return self._links(placed)
            case _:
                return _satellites(placed)

    def _positions(self, as_of_ns: int) -> Floats:
        """Earth-fixed positions [satellites, 3], km."""
        times_ns = np.array([as_of_ns])
        orbits = list(self.satellites.values())
        elements = [each for each in orbits if isinstance(each, Satellite)]
        if elements:
            return positions(elements, times_ns)[:, 0]
        circular = [each for each in orbits if isinstance(each, CircularOrbit)]
        return np.concatenate([orbit.positions(times_ns) for orbit in circular])

    def _ground_stations(self) -> Iterator[_Entity]:
        for name, site in self.stations.items():
            fields = {
                "lat": site.latitude_deg,
                "lon": site.longitude_deg,
                "altitude_km": site.altitude_m / 1000,
            }
            yield f"sim-{name}", {}, fields

    def _links(self, placed: dict[str, Floats]) -> Iterator[_Entity]:
        if not placed:
            return
        where = np.stack(list(placed.values()))
        for name, site in self.stations.items():
            seen = look(site, where)
            for index in np.flatnonzero(seen.elevation_deg >= ELEVATION_DEG_MIN):
                satellite = list(placed)[index]
                range_km = float(seen.range_km[index])
                tags = {"ground_station": f"sim-{name}", "satellite": satellite}
                fields = {
                    "elevation_deg": float(seen.elevation_deg[index]),
                    "azimuth_deg": float(seen.azimuth_deg[index]),
                    "slant_range_km": range_km,
                    "frequency_ghz": _RADIO.frequency_ghz,
                    "bandwidth_mhz": _RADIO.bandwidth_mhz,
                    "eirp_dbw": _RADIO.eirp_dbw,
                    "g_over_t_db_k": _RADIO.g_over_t_db_k,
                    "free_space_loss_db": float(free_space_loss_db(range_km, _RADIO.frequency_ghz)),
                    "snr_db": float(snr_db(_RADIO, range_km)),
                }
                yield f"sim-{name}:{satellite}", tags, fields


_Entity = tuple[str, dict[str, str], dict[str, float]]


def load(directory: Path) -> Simulation:
    """The simulation of a data directory. Raises `OperatorError` if a file is damaged."""
    stations = directory / "stations.csv"
    elements = directory / "elements.tle"
    sites = _read_stations(stations) if stations.exists() else _STATIONS
    if not elements.exists():
        return Simulation(sites, dict(_walker()), sampled=False)
    try:
        found = read_elements(elements)
    except OSError as error:
        message = f"{elements}: {error.strerror}"
        raise OperatorError(message) from error
    step = -(-len(found) // SATELLITES_MAX)
    chosen: dict[str, CircularOrbit | Satellite] = {
        f"sim-{each.number}": each for each in found[::step]
    }
    return Simulation(sites, chosen, sampled=step > 1)


def _walker() -> Iterator[tuple[str, CircularOrbit]]:
    total = _PLANES * _PER_PLANE
    for plane in range(_PLANES):
        for slot in range(_PER_PLANE):
            yield (
                f"sim-{plane + 1}-{slot + 1:02}",
                CircularOrbit(
                    altitude_km=_ALTITUDE_KM,
                    inclination_deg=_INCLINATION_DEG,
                    node_deg=360 * plane / _PLANES,
                    phase_deg=360 * (slot / _PER_PLANE + _PHASING * plane / total),
                    epoch_ns=_EPOCH_NS,
                ),
            )


def _read_stations(path: Path) -> dict[str, Site]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            return {
                row["name"]: Site(
                    float(row["latitude_deg"]),
                    float(row["longitude_deg"]),
                    float(row["altitude_m"]),
                )
                for row in rows
            }
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: {reason(error, path)}"
        raise OperatorError(message) from error
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        columns = "name,latitude_deg,longitude_deg,altitude_m"
        message = f"{path}: line {rows.line_num} is not one of a table of {columns}"
        raise OperatorError(message) from error


def _satellites(placed: dict[str, Floats]) -> Iterator[_Entity]:
    if not placed:
        return
    positions = geodetic(np.stack(list(placed.values())))
    for satellite, position in zip(placed, positions, strict=True):
        yield (
            satellite,
            {},
            dict(zip(("lat", "lon", "altitude_km"), map(float, position), strict=True)),
        )


def _age_days(satellite: Satellite, as_of_ns: int) -> float:
    elements = satellite.elements
    epoch_days = elements.jdsatepoch + elements.jdsatepochF - _UNIX_JULIAN_DAYS
    return abs(as_of_ns / _DAY_NS - float(epoch_days))


def _issue(entity_id: str, code: str, message: str) -> dict[str, str]:
    return {"entity_id": entity_id, "code": code, "message": message}


def _id_bytes(entity: _Entity) -> bytes:
    return entity[0].encode()
