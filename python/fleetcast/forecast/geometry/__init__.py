"""Geometry of links between the ground and satellites, and its effect on a signal."""

from __future__ import annotations

from fleetcast.forecast.geometry.earth import Look, Site, earth_fixed, geodetic, look, sidereal_rad
from fleetcast.forecast.geometry.link_budget import (
    Radio,
    carrier_to_noise_density_dbhz,
    free_space_loss_db,
    slant_range_km,
    snr_db,
)
from fleetcast.forecast.geometry.orbits import (
    CircularOrbit,
    Satellite,
    positions,
    read_elements,
)

__all__ = [
    "CircularOrbit",
    "Look",
    "Radio",
    "Satellite",
    "Site",
    "carrier_to_noise_density_dbhz",
    "earth_fixed",
    "free_space_loss_db",
    "geodetic",
    "look",
    "positions",
    "read_elements",
    "sidereal_rad",
    "slant_range_km",
    "snr_db",
]
