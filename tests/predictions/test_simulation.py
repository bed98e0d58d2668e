"""G11, G12: a topology that is made up, where an operator wants one and nothing is observed."""

from __future__ import annotations

import numpy as np
import pytest

from fleetcast.errors import OperatorError
from fleetcast.forecast.geometry import Site, geodetic
from fleetcast.forecast.simulation import load
from tests.conformance.api import at, record

from .conftest import service_of

# Two-line elements of the International Space Station, from the report that defines SGP4's tests.
ISS = (
    "1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n"
    "2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n"
)
SEPTEMBER_2008_NS = 1_222_000_000_000_000_000


@pytest.fixture(scope="module")
def simulating(tmp_path_factory):
    yield from service_of(tmp_path_factory.mktemp("sim"), "--set", "topology.simulate=true")


def test_g11_nothing_observed_shows_the_constellation(simulating):
    tenant = simulating.tenant()
    document = tenant.get("/topology").json
    assert list(document) == ["as_of_utc", "tenant_key", "entities", "simulation"]
    kinds = [entity["measurement"] for entity in document["entities"]]
    assert kinds == sorted(kinds)
    assert kinds.count("satellite") == 72
    assert kinds.count("ground_station") == 8
    assert kinds.count("link") > 0
    ids = {entity["entity_id"]: entity for entity in document["entities"]}
    for entity in document["entities"]:
        assert entity["tags"]["data_source"] == "simulation"
        assert entity["tags"]["entity_type"] == entity["measurement"]
        assert entity["observed_at"] == document["as_of_utc"]
        if entity["measurement"] == "link":
            assert entity["fields"]["elevation_deg"] >= 25
            assert (
                550 <= entity["fields"]["slant_range_km"] <= 1_162
            )  # seen from a pole, 21 km lower
            assert {entity["tags"]["satellite"], entity["tags"]["ground_station"]} <= set(ids)
        else:
            assert set(entity["fields"]) == {"lat", "lon", "altitude_km"}
    london = ids["sim-london"]["fields"]
    assert london == {"lat": 51.507, "lon": -0.128, "altitude_km": 0.011}
    assert document["simulation"] == {"sampled": False, "approximate": True, "issues": []}


@pytest.mark.parametrize("measurement", ["satellite", "ground_station", "link"])
def test_g11_a_filter_shows_its_own_kind(simulating, measurement):
    document = simulating.tenant().get("/topology", measurement=measurement).json
    assert {entity["measurement"] for entity in document["entities"]} == {measurement}
    assert "simulation" in document


@pytest.mark.parametrize("measurement", ["weather", "telemetry"])
def test_g11_other_filters_stay_empty(simulating, measurement):
    document = simulating.tenant().get("/topology", measurement=measurement).json
    assert document["entities"] == []
    assert "simulation" not in document  # G12


def test_g11_never_beside_observed_data(simulating):
    tenant = simulating.tenant()
    tenant.write(record(at(1), "real"))
    document = tenant.topology().json
    assert [entity["entity_id"] for entity in document["entities"]] == ["real"]
    assert "simulation" not in document


@pytest.mark.parametrize("real", ["satellite", "ground_station", "link"])
def test_g11_a_fleet_that_is_merely_silent_is_not_replaced_by_a_made_up_one(simulating, real):
    tenant = simulating.tenant()
    tenant.write(record(at(1), "real", measurement=real))
    for measurement in (None, "satellite", "ground_station", "link"):
        wanted = {} if measurement is None else {"measurement": measurement}
        before = tenant.topology(as_of_utc=at(0), freshness_seconds=1, **wanted).json
        after = tenant.get("/topology", freshness_seconds=1, **wanted).json
        for document in (before, after):
            assert document["entities"] == []
            assert "simulation" not in document  # G12


def test_g11_records_that_were_rejected_are_no_fleet(simulating):
    tenant = simulating.tenant()
    assert tenant.post([record("1999-01-01T00:00:00Z", "old")]).json["accepted_count"] == 0
    tenant.write(record(at(1), "elsewhere", measurement="weather"))
    document = tenant.get("/topology", freshness_seconds=1).json
    assert "simulation" in document


def test_the_same_instant_shows_the_same(simulating):
    one, other = simulating.tenant(), simulating.tenant()
    first = one.get("/topology", as_of_utc=at(0)).json
    assert other.get("/topology", as_of_utc=at(0)).json["entities"] == first["entities"]


def test_elements_and_stations_of_the_operator(tmp_path):
    (tmp_path / "elements.tle").write_text("ISS\n" + ISS)
    (tmp_path / "stations.csv").write_text(
        "name,latitude_deg,longitude_deg,altitude_m\npole,90,0,0\n"
    )
    simulation = load(tmp_path)
    entities, about = simulation.answer(SEPTEMBER_2008_NS, None)
    kinds = {entity["entity_id"]: entity for entity in entities}
    assert set(kinds) == {"sim-pole", "sim-25544"}
    assert abs(kinds["sim-25544"]["fields"]["lat"]) <= 51.8
    assert 330 <= kinds["sim-25544"]["fields"]["altitude_km"] <= 370
    assert about["issues"] == []
    _, later = simulation.answer(SEPTEMBER_2008_NS + 30 * 86_400 * 10**9, "satellite")
    assert [(each["entity_id"], each["code"]) for each in later["issues"]] == [
        ("sim-25544", "stale_elements")
    ]


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "elements.tle").write_text(ISS.replace("51.6416", "51.6417"))
    with pytest.raises(OperatorError, match=r"elements\.tle"):
        load(tmp_path)


def test_the_line_of_a_station_that_is_none_is_named(tmp_path):
    (tmp_path / "stations.csv").write_text(
        "name,latitude_deg,longitude_deg,altitude_m\npole,90,0,0\nsea,deep,0,0\n"
    )
    with pytest.raises(OperatorError, match=r"stations\.csv: line 3 is not one of a table"):
        load(tmp_path)


def test_geodetic_undoes_the_position_of_a_site():
    dice = np.random.default_rng(7)
    for _ in range(100):
        latitude, longitude = dice.uniform(-90, 90), dice.uniform(-180, 180)
        altitude_m = dice.uniform(0, 1_500_000)
        found = geodetic(Site(latitude, longitude, altitude_m).fixed_km())
        assert found == pytest.approx([latitude, longitude, altitude_m / 1000], abs=1e-6)
