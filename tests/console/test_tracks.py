"""Ways of entities on the map."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.service.service import command

from .fleet import load


@pytest.fixture(scope="module", autouse=True)
def rows(place):
    """A satellite that crosses the edge of the map, and one whose place has other names."""
    _, data = place
    command(data, "tenant", "create", "orbit")
    now = datetime.now(UTC)
    longitudes = [178.0, 179.0, -179.0, -178.0]
    records = [
        {
            "measurement": "satellite",
            "time": (now - timedelta(minutes=10 - at)).isoformat(),
            "tags": {"entity_id": name},
            "fields": {names[0]: 10.0 + at, names[1]: longitude, "battery": 1.0},
        }
        for name, names in (("a", ("lat", "lon")), ("b", ("latitude_deg", "lng")))
        for at, longitude in enumerate(longitudes)
    ]
    old = {**records[0], "time": (now - timedelta(hours=2)).isoformat()}
    load(data, "orbit", iter([*records, old]))
    yield
    command(data, "tenant", "delete", "orbit", "--yes")


def test_a_track_has_the_places_of_the_last_hour_as_they_were_sent(operator):
    query = 'measurement=satellite&entities=["a","b","c"]'
    found = operator.read(f"tenants/orbit/tracks?{query}")["tracks"]
    way = [[10.0, 178.0], [11.0, 179.0], [12.0, -179.0], [13.0, -178.0]]
    assert found == [way, way, []]


@pytest.mark.parametrize("entities", ["[]", "a", json.dumps([str(of) for of in range(17)])])
def test_tracks_are_of_a_few_entities(operator, entities):
    compact = entities.replace(" ", "")
    answer = operator.ask(f"api/tenants/orbit/tracks?measurement=satellite&entities={compact}")
    assert (answer.status, answer.json["field"]) == (400, "entities")
