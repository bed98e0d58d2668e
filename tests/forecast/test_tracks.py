"""`--elements`: geometry ahead comes from the orbit, a place on the ground from rows before."""

import numpy as np
import pytest

from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import features, view
from fleetcast.forecast.geometry import look, positions, read_elements
from fleetcast.forecast.rows import Rows
from fleetcast.forecast.tracks import Directions, Tracks, located

from .conftest import MINUTE
from .test_geometry import ELEMENTS, SITES, summed

START = 962_222_400_000_000_000
"""2000-06-28T20:00:00Z, near the elements' epoch."""


@pytest.fixture
def satellites(tmp_path):
    path = tmp_path / "elements.txt"
    lines = [part for name, pair in ELEMENTS.items() for part in (name, *map(summed, pair))]
    path.write_text("\n".join(lines))
    return {satellite.name: satellite for satellite in read_elements(path)}


def seen(satellite, site, minutes=240):
    """Reports of a link while the satellite is 10 degrees up, in tenths of a degree."""
    times = START + np.arange(minutes) * MINUTE
    there = look(site, positions([satellite], times)[0])
    up = there.elevation_deg > 10
    return Rows(
        times[up],
        {
            "snr_db": there.elevation_deg[up] / 5,
            "elevation_deg": np.round(there.elevation_deg[up], 1),
            "azimuth_deg": np.round(there.azimuth_deg[up], 1),
        },
    )


def high_enough(satellite):
    return max((seen(satellite, site) for site in SITES), key=lambda rows: len(rows.times_ns))


@pytest.mark.parametrize("name", ["HIGH", "VANGUARD 1"])
@pytest.mark.parametrize("site", SITES)
def test_the_place_of_a_link_is_found_from_what_it_saw(name, site, satellites):
    rows = seen(satellites[name], site, 1440)
    reported = Directions(
        *(
            values[:40]
            for values in (
                rows.times_ns,
                rows.fields["elevation_deg"],
                rows.fields["azimuth_deg"],
            )
        )
    )
    found = located(satellites[name], reported)
    assert found.latitude_deg == pytest.approx(site.latitude_deg, abs=0.2)
    assert found.longitude_deg == pytest.approx(site.longitude_deg, abs=0.2)


def test_directions_that_fit_no_place_give_none(satellites):
    rows = high_enough(satellites["HIGH"])
    still = np.full(len(rows.times_ns), 45.0)
    assert located(satellites["VANGUARD 1"], Directions(rows.times_ns, still, still)) is None


@pytest.mark.parametrize(
    ("entity_id", "name"),
    [("berlin/90001", "HIGH"), ("link-5", "VANGUARD 1"), ("gs7:vanguard_1", "VANGUARD 1")],
)
def test_the_entity_id_names_the_satellite(entity_id, name, satellites):
    rows = high_enough(satellites["HIGH"])
    assert Tracks(satellites.values()).of(entity_id, rows).satellite.name == name


def test_others_have_no_track(satellites):
    rows = high_enough(satellites["HIGH"])
    assert Tracks(satellites.values()).of("highway-7", rows) is None
    assert Tracks(satellites.values()).of("HIGH", Rows(rows.times_ns, {})) is None


def test_geometry_ahead_is_the_orbits(satellites):
    high = satellites["HIGH"]
    rows = high_enough(high)
    track = Tracks([high]).of("HIGH", rows)
    issued = rows.times_ns[30:31]
    result = features(SNR, [rows.before(int(issued[0]))], issued, [track])
    assert result.errors[0, 0] is None
    site = min(SITES, key=lambda s: -len(seen(high, s).times_ns))
    ahead = look(site, positions([high], issued + 60 * MINUTE)[0])
    elevation = result.matrix[0, 0, view(SNR).index("elevation_60m")]
    assert elevation == pytest.approx(ahead.elevation_deg[0], abs=0.2)
    now = look(site, positions([high], issued)[0])
    loss = 20 * np.log10(ahead.range_km[0] / now.range_km[0])
    assert result.matrix[0, 0, view(SNR).index("path_loss_60m")] == pytest.approx(loss, abs=0.02)


def test_rows_after_the_issue_time_do_not_place_a_link(satellites):
    high = satellites["HIGH"]
    rows = high_enough(high)
    later = np.arange(len(rows.times_ns)) >= 30
    turned = {**rows.fields, "azimuth_deg": rows.fields["azimuth_deg"] + 90 * later}
    issued = rows.times_ns[30:31]
    both = [
        features(SNR, [r], issued, [Tracks([high]).of("HIGH", r)]).matrix
        for r in (rows, Rows(rows.times_ns, turned))
    ]
    assert np.array_equal(*both, equal_nan=True)
