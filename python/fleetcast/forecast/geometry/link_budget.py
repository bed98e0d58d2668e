"""Free-space loss, slant range and link budget.

Free-space loss: Recommendation ITU-R P.525-4, eq. 4, as 92.45 + 20 log10(km) + 20 log10(GHz).
Carrier to noise density and ratio: Maral, Bousquet and Sun, Satellite Communications Systems,
6th edition, 2020, section 5.6; 228.6 is minus Boltzmann's constant in dBW/K/Hz. Slant range to a
circular shell is the law of cosines on a sphere of the equator's radius.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.geometry.earth import EQUATOR_KM

if TYPE_CHECKING:
    from fleetcast.forecast.rows import Floats

_BOLTZMANN_DB = 228.6


def slant_range_km(elevation_deg: Floats | float, altitude_km: Floats | float) -> Floats:
    """Distance to a satellite of a circular orbit: degrees above the horizon, km above ground.

    Example: at 90 degrees and 550 km it is 550 km.
    """
    lift = EQUATOR_KM * np.sin(np.radians(elevation_deg))
    range_km: Floats = np.sqrt(lift**2 + altitude_km * (altitude_km + 2 * EQUATOR_KM)) - lift
    return range_km


def free_space_loss_db(range_km: Floats | float, frequency_ghz: Floats | float) -> Floats:
    """Loss between isotropic antennas, in dB. Example: 168.6 dB at 550 km and 11.7 GHz."""
    loss: Floats = 92.45 + 20 * np.log10(range_km) + 20 * np.log10(frequency_ghz)
    return loss


@dataclass(frozen=True)
class Radio:
    """The RF configuration of a link. `atmosphere_db` and `other_db` add to the free-space loss."""

    frequency_ghz: float
    bandwidth_mhz: float
    eirp_dbw: float
    g_over_t_db_k: float
    atmosphere_db: float = 0.0
    other_db: float = 0.0


def carrier_to_noise_density_dbhz(radio: Radio, range_km: Floats | float) -> Floats:
    """Carrier to noise density, C/N0 in dBHz, at a slant range."""
    return (
        radio.eirp_dbw
        + radio.g_over_t_db_k
        - free_space_loss_db(range_km, radio.frequency_ghz)
        - radio.atmosphere_db
        - radio.other_db
        + _BOLTZMANN_DB
    )


def snr_db(radio: Radio, range_km: Floats | float) -> Floats:
    """Carrier to noise ratio in the link's bandwidth, in dB."""
    density = carrier_to_noise_density_dbhz(radio, range_km)
    ratio: Floats = density - 10 * np.log10(radio.bandwidth_mhz * 1e6)
    return ratio
