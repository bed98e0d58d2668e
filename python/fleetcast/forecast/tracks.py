"""Links to satellites in a file of elements: the satellite's future path, seen from the link.

The entity's id contains the satellite's catalogue number or name. Example: the entity `gw-a/44713`
points at the satellite with the number 44713. The link's place on the ground follows from the
directions that it reported before the issue time. Without directions, or if they do not fit the
orbit, there is no track. Geometry is then extended from rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fleetcast.forecast.families import MINUTE_NS
from fleetcast.forecast.features.path import Path
from fleetcast.forecast.geometry import Site, look, positions
from fleetcast.forecast.geometry.earth import EQUATOR_KM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fleetcast.forecast.geometry import Satellite
    from fleetcast.forecast.rows import Floats, Instants, Rows

_ROWS_MAX = 64
"""The first rows with directions show the place of the link; more rows would not show it better."""
_ROWS_NEEDED = 5
_MISFIT_DEG_MAX = 1.0
_BEARINGS = 72
_STEP_DEG = 1e-4
_ROUNDS = 12
_TRIED = 4
_CHANGE_DEG_MAX = 5.0
_Point: TypeAlias = tuple[float, float]
"""Degrees north, degrees east."""
_WORDS = re.compile(r"[^0-9a-z]+")


class Tracks:
    """Finds tracks for entities among satellites."""

    def __init__(self, satellites: Iterable[Satellite]) -> None:
        self._by_word: dict[str, Satellite] = {}
        self._by_name: list[tuple[str, Satellite]] = []
        for satellite in satellites:
            self._by_word[str(satellite.number)] = satellite
            if name := _normalized(satellite.name):
                self._by_name.append((f" {name} ", satellite))
        # The longest name comes first: STARLINK-1008 is not STARLINK-10.
        self._by_name.sort(key=lambda item: -len(item[0]))

    def of(self, entity_id: str, rows: Rows) -> ElementsTrack | None:
        """The track of an entity, if its id names a satellite and it reported directions."""
        satellite = self._satellite(entity_id)
        if satellite is None or not {"elevation_deg", "azimuth_deg"} <= set(rows.fields):
            return None
        elevation, azimuth = rows.fields["elevation_deg"], rows.fields["azimuth_deg"]
        known = np.flatnonzero(np.isfinite(elevation) & np.isfinite(azimuth))[:_ROWS_MAX]
        return ElementsTrack(
            satellite, Directions(rows.times_ns[known], elevation[known], azimuth[known])
        )

    def _satellite(self, entity_id: str) -> Satellite | None:
        normalized = _normalized(entity_id)
        for word in normalized.split():
            if (found := self._by_word.get(word.lstrip("0"))) is not None:
                return found
        around = f" {normalized} "
        return next((s for name, s in self._by_name if name in around), None)


def _normalized(text: str) -> str:
    return _WORDS.sub(" ", text.lower()).strip()


@dataclass(frozen=True)
class Directions:
    """Directions that a link reported: [rows] each."""

    times_ns: Instants
    elevation_deg: Floats
    azimuth_deg: Floats

    def first(self, count: int) -> Directions:
        """The first `count` directions."""
        return Directions(
            self.times_ns[:count], self.elevation_deg[:count], self.azimuth_deg[:count]
        )


@dataclass(frozen=True)
class ElementsTrack:
    """A `Track` by elements, for issue times at which enough directions were known."""

    satellite: Satellite
    directions: Directions

    def path(self, issued_ns: Instants, ahead_minutes: NDArray[np.int64]) -> Path:
        """The path; NaN at issue times at which the link's site is still unknown."""
        shape = (len(issued_ns), len(ahead_minutes))
        elevation, range_km = np.full(shape, np.nan), np.full(shape, np.nan)
        known = np.searchsorted(self.directions.times_ns, issued_ns)
        for count in np.unique(known[known >= _ROWS_NEEDED]).tolist():
            site = located(self.satellite, self.directions.first(count))
            if site is None:
                continue
            chosen = known == count
            times = issued_ns[chosen, None] + ahead_minutes * MINUTE_NS
            fixed = positions([self.satellite], times.ravel())[0]
            seen = look(site, fixed.reshape(*times.shape, 3))
            elevation[chosen], range_km[chosen] = seen.elevation_deg, seen.range_km
        return Path(elevation, range_km)


def located(satellite: Satellite, directions: Directions) -> Site | None:
    """The site at sea level from which the satellite was seen in these directions.

    `None` if no site fits them within a degree.
    """
    fixed = positions([satellite], directions.times_ns)[0]
    if np.isnan(fixed).any():
        return None
    guesses = _circle(fixed[0], float(directions.elevation_deg[0]))
    guesses.sort(key=lambda guess: _size(_misfit(guess, fixed, directions)))
    points = [_improved(guess, fixed, directions) for guess in guesses[:_TRIED]]
    misfit, point = min((_size(_misfit(point, fixed, directions)), point) for point in points)
    return Site(*point) if misfit <= _MISFIT_DEG_MAX else None


def _improved(guess: _Point, fixed_km: Floats, seen: Directions) -> _Point:
    """Improves a guess by Gauss and Newton's least squares."""
    point = guess
    for _ in range(_ROUNDS):
        misfit = _misfit(point, fixed_km, seen)
        steps = ((point[0] + _STEP_DEG, point[1]), (point[0], point[1] + _STEP_DEG))
        slopes = [(_misfit(step, fixed_km, seen) - misfit) / _STEP_DEG for step in steps]
        change, *_ = np.linalg.lstsq(np.stack(slopes, axis=1), -misfit)
        north, east = np.clip(change, -_CHANGE_DEG_MAX, _CHANGE_DEG_MAX).tolist()
        point = (min(max(point[0] + north, -90.0), 90.0), point[1] + east)
    return point


def _size(misfit: Floats) -> float:
    return float(np.sqrt(np.mean(misfit**2)))


def _circle(fixed_km: Floats, elevation_deg: float) -> list[_Point]:
    """Points that see one position at this elevation, on a sphere: a circle around the position."""
    radius = float(np.linalg.norm(fixed_km))
    up = np.radians(elevation_deg)
    away = np.arccos(np.clip(EQUATOR_KM * np.cos(up) / radius, -1, 1)) - up
    below = np.arcsin(fixed_km[2] / radius)
    bearing = np.linspace(0, 2 * np.pi, _BEARINGS, endpoint=False)
    sine = np.sin(below) * np.cos(away) + np.cos(below) * np.sin(away) * np.cos(bearing)
    turn = np.arctan2(
        np.sin(bearing) * np.sin(away) * np.cos(below), np.cos(away) - np.sin(below) * sine
    )
    latitude = np.degrees(np.arcsin(np.clip(sine, -1, 1)))
    longitude = np.degrees(np.arctan2(fixed_km[1], fixed_km[0]) + turn)
    return list(zip(latitude.tolist(), longitude.tolist(), strict=True))


def _misfit(point: _Point, fixed_km: Floats, seen: Directions) -> Floats:
    """Degrees on the sky between the reported directions and the point's directions: [2 * rows]."""
    there = look(Site(*point), fixed_km)
    turned = (there.azimuth_deg - seen.azimuth_deg + 180) % 360 - 180
    across = turned * np.cos(np.radians(seen.elevation_deg))
    return np.concatenate([there.elevation_deg - seen.elevation_deg, across])
