"""A description says what a store holds, as counted from all that was written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Plane, encode_records

from .model import Model
from .strategies import ENTITIES, NOW_NS, batches
from .test_properties import TENANT, write
from .test_scan import record

KINDS = {float: "float", bool: "bool", str: "text"}


def described(records: list[dict], types: dict) -> dict:
    """Contents of records by measurement, without those of names that have no row."""
    measurements = {}
    for name in sorted({item["measurement"] for item in records}):
        rows = [item for item in records if item["measurement"] == name]
        times = [row["time_ns"] for row in rows]
        tag_sets = {tuple(sorted(row["tags"].items())) for row in rows}
        pairs = {pair for tags in tag_sets for pair in tags}
        keys = {key for key, _ in pairs} - {"entity_id"}
        values = {key: sorted(value for other, value in pairs if other == key) for key in keys}
        ids = sorted(value for key, value in pairs if key == "entity_id" and value)
        measurements[name] = {
            "rows": len(rows),
            "first_ns": min(times),
            "last_ns": max(times),
            "series": len(tag_sets),
            "entities": {"count": len(ids), "first": ids},
            "tags": {key: {"count": len(v), "first": v} for key, v in values.items()},
            "fields": {field: KINDS[kind] for (of, field), kind in types.items() if of == name},
        }
    return {"measurements": measurements}


@given(
    written=st.lists(batches, max_size=5),
    compacted=st.lists(st.booleans(), min_size=5, max_size=5),
    measurement=st.sampled_from([None, "link", "weather"]),
    entity=st.sampled_from([None, *ENTITIES, "ghost"]),
)
def test_a_description_is_that_of_the_model(written, compacted, measurement, entity) -> None:
    plane, model = Plane.in_memory(TENANT), Model(TENANT)
    for records, compact in zip(written, compacted, strict=False):
        assert write(plane, records) == model.write(records, NOW_NS)
        if compact:
            plane.compact(whole=True, now_ns=NOW_NS)
    rows = [
        item
        for item in model.records
        if measurement in (None, item["measurement"])
        and entity in (None, item["tags"].get("entity_id"))
    ]
    found = plane.describe(measurement, entity)
    assert found == described(rows, model.types)


def test_a_description_lists_the_first_hundred_names_and_counts_all() -> None:
    plane = Plane.in_memory(TENANT)
    records = [record(0, {"x": 1.0}, entity=f"e{at:03}") for at in range(250)]
    plane.write_json(encode_records(records), now_ns=NOW_NS)
    entities = plane.describe()["measurements"]["link"]["entities"]
    assert entities == {"count": 250, "first": [f"e{at:03}" for at in range(100)]}
    one = plane.describe("link", "e249")["measurements"]["link"]
    assert (one["rows"], one["entities"]) == (1, {"count": 1, "first": ["e249"]})
