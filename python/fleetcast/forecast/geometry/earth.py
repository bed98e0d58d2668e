"""Converts inertial positions to directions seen from a site on the ground.

Formulas: Vallado, Fundamentals of Astrodynamics and Applications, 4th edition, 2013: sidereal time
eq. 3-47 (IAU 1982), site to earth-fixed position eq. 3-7, look angles algorithm 27. Ellipsoid: WGS
84 (NIMA TR8350.2). Polar motion (under 15 m) and UT1 - UTC (under 0.9 s, 0.004 degrees of turn) are
left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fleetcast.forecast.rows import Floats, Instants

EQUATOR_KM = 6378.137
FLATTENING = 1 / 298.257223563
_ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING)
_J2000_NS = 946_728_000_000_000_000
_CENTURY_NS = 36_525 * 86_400 * 1_000_000_000


@dataclass(frozen=True)
class Site:
    """A point on the ground: degrees north, degrees east, metres above the ellipsoid.

    Example: `Site(51.507, -0.128, 11)` is London.
    """

    latitude_deg: float
    longitude_deg: float
    altitude_m: float = 0.0

    def fixed_km(self) -> Floats:
        """Earth-fixed position [3], km."""
        latitude, longitude = np.radians([self.latitude_deg, self.longitude_deg])
        normal = EQUATOR_KM / np.sqrt(1 - _ECCENTRICITY_SQUARED * np.sin(latitude) ** 2)
        altitude = self.altitude_m / 1000
        across = (normal + altitude) * np.cos(latitude)
        up = (normal * (1 - _ECCENTRICITY_SQUARED) + altitude) * np.sin(latitude)
        return np.array([across * np.cos(longitude), across * np.sin(longitude), up])

    def axes(self) -> Floats:
        """Rows east, north and up as earth-fixed unit vectors [3, 3]."""
        latitude, longitude = np.radians([self.latitude_deg, self.longitude_deg])
        sin_n, cos_n = np.sin(latitude), np.cos(latitude)
        sin_e, cos_e = np.sin(longitude), np.cos(longitude)
        return np.array(
            [
                [-sin_e, cos_e, 0.0],
                [-sin_n * cos_e, -sin_n * sin_e, cos_n],
                [cos_n * cos_e, cos_n * sin_e, sin_n],
            ]
        )


@dataclass(frozen=True)
class Look:
    """Directions and distances from a site; arrays of one shape."""

    elevation_deg: Floats
    azimuth_deg: Floats
    range_km: Floats


def look(site: Site, fixed_km: Floats) -> Look:
    """Directions from a site to earth-fixed positions [..., 3], km. Refraction is left out.

    Example: a satellite 550 km above the site has elevation 90 degrees and range 550 km.
    """
    east, north, up = np.moveaxis((fixed_km - site.fixed_km()) @ site.axes().T, -1, 0)
    flat = np.hypot(east, north)
    return Look(
        np.degrees(np.arctan2(up, flat)),
        np.degrees(np.arctan2(east, north)) % 360,
        np.hypot(flat, up),
    )


def sidereal_rad(times_ns: Instants) -> Floats:
    """Greenwich mean sidereal time, 1982, in radians, of instants in UTC."""
    centuries = (times_ns - _J2000_NS) / _CENTURY_NS
    seconds = (
        67_310.548_41
        + (876_600 * 3600 + 8_640_184.812_866) * centuries
        + 0.093_104 * centuries**2
        - 6.2e-6 * centuries**3
    )
    return np.radians(seconds % 86_400 / 240)


def earth_fixed(inertial_km: Floats, times_ns: Instants) -> Floats:
    """Positions [..., 3] in TEME, turned with the earth to instants [...]."""
    turn = sidereal_rad(times_ns)
    sin, cos = np.sin(turn), np.cos(turn)
    x, y, z = np.moveaxis(inertial_km, -1, 0)
    return np.stack([cos * x + sin * y, cos * y - sin * x, np.broadcast_to(z, x.shape)], axis=-1)


def geodetic(fixed_km: Floats) -> Floats:
    """Degrees north, degrees east, km above the ellipsoid [..., 3] of earth-fixed km [..., 3].

    Bowring, B. R.: Transformation from spatial to geographical coordinates, Survey Review 23, 1976:
    one step, accurate to a millimetre up to the height of any low orbit.
    """
    x, y, z = np.moveaxis(fixed_km, -1, 0)
    polar_km = EQUATOR_KM * (1 - FLATTENING)
    second = (EQUATOR_KM**2 - polar_km**2) / polar_km**2
    flat = np.hypot(x, y)
    reduced = np.arctan2(z * EQUATOR_KM, flat * polar_km)
    latitude = np.arctan2(
        z + second * polar_km * np.sin(reduced) ** 3,
        flat - _ECCENTRICITY_SQUARED * EQUATOR_KM * np.cos(reduced) ** 3,
    )
    normal = EQUATOR_KM / np.sqrt(1 - _ECCENTRICITY_SQUARED * np.sin(latitude) ** 2)
    # The height is computed in the meridian's plane, so that it holds at the poles as well.
    height = flat * np.cos(latitude) + z * np.sin(latitude) - EQUATOR_KM**2 / normal
    return np.stack([np.degrees(latitude), np.degrees(np.arctan2(y, x)), height], axis=-1)
