"""Reads of much compacted data: shared among threads, and ended once the point budget is full."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine, Plane, encode_records, format_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * SECOND_NS
END_NS = 20_700 * DAY_NS
NOW = {"now_ns": END_NS}
MASTER_KEY = bytes(range(32))


@pytest.fixture
def planes(tmp_path: Path) -> Iterator[list[Plane]]:
    """A store on disk, and its twin in memory, which knows neither segments nor threads."""
    engine = Engine(tmp_path, MASTER_KEY)
    engine.create_plane("a1")
    yield [engine.plane("a1", "acme"), Plane.in_memory("acme")]
    engine.close()


def write(planes: list[Plane], records: list[dict]) -> None:
    for first in range(0, len(records), 10_000):
        body = encode_records(records[first : first + 10_000])
        for plane in planes:
            plane.write_json(body, batch_records_max=10_000, **NOW)


def record(entity: int, time_ns: int, **fields: float) -> dict:
    tags = {"entity_id": f"e{entity:02d}"}
    return {"measurement": "link", "time": format_time(time_ns), "tags": tags, "fields": fields}


@pytest.mark.parametrize(
    "windows", [{"interval": "1h", "agg": "mean"}, {"interval": "15s", "agg": "last"}, {}]
)
def test_h31_h34_entities_that_several_threads_read_come_in_the_order_asked_for(planes, windows):
    entities, days = 20, 3
    write(
        planes,
        [
            record(entity, END_NS - (step + 1) * 600 * SECOND_NS, snr_db=entity + step / 8)
            for step in range(days * 144)
            for entity in range(entities)
        ],
    )
    planes[0].compact(whole=True, **NOW)
    asked = [f"e{entity * 7 % entities:02d}" for entity in range(entities)] + ["unknown"]
    query = {"entity_ids": asked, "measurement": "link", "start_ns": END_NS - days * DAY_NS}
    query |= {"end_ns": END_NS, "point_budget": 1_000_000, "raw_span_seconds": days * 86_400}
    stored, twin = (plane.series_json(**query, **windows, **NOW) for plane in planes)
    assert stored == twin
    series = json.loads(stored)["series"]
    assert [each["entity_id"] for each in series] == asked
    assert all(each["point_count"] > 0 for each in series[:-1])


@pytest.mark.parametrize("points", [16, 9_999, 29_999, 30_000, 30_001, 59_999])
def test_h23_f4_the_first_points_are_those_of_the_whole_window(planes, points):
    """Records of two producers share rows, so rows are half as many as records."""
    step_ns = SECOND_NS // 10
    times = [END_NS - 3_600 * SECOND_NS + step * step_ns for step in range(30_000)]
    write(planes, [record(1, time_ns, snr_db=time_ns % 977) for time_ns in times])
    write(planes, [record(1, time_ns, tilt=time_ns % 31) for time_ns in times])
    write(planes, [record(2, times[-1] + 1, snr_db=1.0)])
    planes[0].compact(whole=True, **NOW)
    query = {"entity_ids": ["e02", "e01"], "measurement": "link", "point_budget": points}
    query |= {"start_ns": END_NS - 3_600 * SECOND_NS, "end_ns": END_NS}
    stored, twin = (json.loads(plane.series_json(**query, **NOW)) for plane in planes)
    assert stored == twin
    assert sum(each["point_count"] for each in stored["series"]) == min(points, 30_001)
    assert stored["truncated"] == (points < 30_001)
