"""Geometry against skyfield: within 0.01 degree and 100 m. No file and no network is needed."""

import datetime as dt
import gzip

import numpy as np
import pytest
from skyfield.api import EarthSatellite, load, wgs84

from fleetcast.errors import OperatorError
from fleetcast.forecast.geometry import (
    CircularOrbit,
    Radio,
    Site,
    carrier_to_noise_density_dbhz,
    free_space_loss_db,
    look,
    positions,
    read_elements,
    slant_range_km,
    snr_db,
)

# Vanguard 1, and a navigation and a low satellite of made-up elements: sums of digits are right.
ELEMENTS = {
    "VANGUARD 1": (
        "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753",
        "2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667",
    ),
    "HIGH": (
        "1 90001U 00000A   00180.50000000  .00000000  00000-0  00000-0 0  9998",
        "2 90001  55.0000  30.0000 0050000  45.0000 200.0000  2.00560000    17",
    ),
    "LOW": (
        "1 90002U 00000B   00180.50000000  .00001000  00000-0  50000-4 0  9992",
        "2 90002  53.0000 120.0000 0001000  90.0000 270.0000 15.05000000    12",
    ),
}
SITES = [Site(52.5, 13.4, 300.0), Site(-33.9, 151.2), Site(0.0, -78.5, 2850.0)]


def summed(line):
    """The line with its last digit put right."""
    total = sum(int(c) if c.isdigit() else c == "-" for c in line[:68])
    return line[:68] + str(total % 10)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "elements.txt"
    lines = [part for name, pair in ELEMENTS.items() for part in (name, *map(summed, pair))]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("name", ELEMENTS)
def test_looks_agree_with_skyfield(site, name, file):
    scale = load.timescale(builtin=True)
    start = dt.datetime(2000, 6, 28, 20, tzinfo=dt.UTC)
    moments = [start + dt.timedelta(minutes=7 * k) for k in range(60)]
    times = np.array([round(m.timestamp()) * 1_000_000_000 for m in moments])
    (satellite,) = [s for s in read_elements(file) if s.name == name]
    ours = look(site, positions([satellite], times)[0])
    ground = wgs84.latlon(site.latitude_deg, site.longitude_deg, site.altitude_m)
    reference = EarthSatellite(*map(summed, ELEMENTS[name]), name, scale)
    up, around, away = (reference - ground).at(scale.from_datetimes(moments)).altaz()
    assert np.abs(ours.elevation_deg - up.degrees).max() < 0.01
    turned = (ours.azimuth_deg - around.degrees + 180) % 360 - 180
    assert (np.abs(turned) * np.cos(np.radians(up.degrees))).max() < 0.01
    assert np.abs(ours.range_km - away.km).max() < 0.1


def test_elements_without_names_gzipped_or_damaged(tmp_path):
    pair = [summed(line) for line in ELEMENTS["LOW"]]
    path = tmp_path / "e.gz"
    path.write_bytes(gzip.compress("\r\n".join(pair).encode()))
    (satellite,) = read_elements(path)
    assert (satellite.name, satellite.number) == ("", 90002)
    for lines in (pair[:1], [pair[0], pair[1][:-1] + "9"], ["nothing"], [pair[1]]):
        path.write_text("\n".join(lines))
        with pytest.raises(OperatorError, match=r"damaged|no elements"):
            read_elements(path)


def test_slant_range_to_a_circular_shell():
    ranges = slant_range_km(np.array([25.0, 40.0, 90.0]), 550.0)
    assert np.round(ranges).tolist() == [1123, 812, 550]


def test_a_circular_orbit_is_seen_at_the_range_of_its_shell():
    orbit = CircularOrbit(1200, 53, 10, 20, 1_700_000_000_000_000_000)
    times = orbit.epoch_ns + np.arange(0, 6000, 60) * 1_000_000_000
    height = np.linalg.norm(orbit.positions(times), axis=1)
    assert np.allclose(height, 6378.137 + 1200)
    # On the equator the ellipsoid is the sphere that the shell's formula is about.
    seen = look(Site(0, 0), orbit.positions(times))
    assert np.allclose(slant_range_km(seen.elevation_deg, 1200), seen.range_km, atol=1e-6)
    turn = 2 * np.pi * np.sqrt((6378.137 + 1200) ** 3 / 398_600.4418)
    assert turn == pytest.approx(6565, abs=5)


def test_link_budget():
    radio = Radio(frequency_ghz=11.7, bandwidth_mhz=250, eirp_dbw=36.7, g_over_t_db_k=9.2)
    away = slant_range_km(40.0, 550.0)
    assert free_space_loss_db(away, 11.7) == pytest.approx(172.0, abs=0.05)
    assert snr_db(radio, away) == pytest.approx(18.5, abs=0.05)
    damp = Radio(11.7, 250, 36.7, 9.2, atmosphere_db=1.5, other_db=0.5)
    lost = carrier_to_noise_density_dbhz(radio, away) - carrier_to_noise_density_dbhz(damp, away)
    assert lost == pytest.approx(2.0)
