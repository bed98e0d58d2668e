"""Reads that others have prepared answer as the first one does: blocks of the log that were joined,
single hours of segments that were kept, and both beside rows that are deleted or compacted."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine, Plane, encode_records, format_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECOND_NS = 1_000_000_000
HOUR_NS = 3_600 * SECOND_NS
START_NS = 20_700 * 24 * HOUR_NS
END_NS = START_NS + 6 * HOUR_NS
NOW = {"now_ns": END_NS}
ENTITIES = [f"e{number}" for number in range(6)]
BATCHES, READS = 96, 3


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    engine = Engine(tmp_path, bytes(32))
    engine.create_plane("a1")
    yield engine.plane("a1", "acme")
    engine.close()


def batch(dice: random.Random, number: int) -> bytes:
    """Rows of some entities under changing tags, in and out of time, some at one instant."""

    def record(measurement: str) -> dict:
        step = number * 225 + dice.randrange(-2_000, 400)
        fields = {f"f{at}": dice.randrange(-80, 80) / 8 for at in range(4) if dice.random() < 0.7}
        fields |= {"up": dice.random() < 0.5, "note": "n" * dice.randrange(3)}
        tags = {"site": dice.choice("ab")} if dice.random() < 0.5 else {}
        if dice.random() < 0.95:
            tags["entity_id"] = dice.choice(ENTITIES)
        time = format_time(START_NS + max(step, 0) // 4 * 4 * SECOND_NS)
        return {"measurement": measurement, "time": time, "tags": tags, "fields": fields}

    return encode_records([record(dice.choice(["link", "pool"])) for _ in range(40)])


def queries() -> Iterator[dict]:
    spans = [(0, 6), (0.3, 5.7), (2, 3), (3.9, 4.1), (4.5, 5.5), (5.25, 6)]
    windows: list[dict] = [{}, {"interval": "1h", "agg": "max", "fields": ["f1"]}]
    windows += [{"interval": "1m", "agg": "mean"}, {"interval": "1h", "agg": "mean"}]
    windows += [{"interval": "1h", "agg": "last"}]
    for start, end in spans:
        for window in windows:
            yield {
                "entity_ids": ["e3", "nobody", "e0", "e5", "e1"],
                "start_ns": START_NS + int(start * HOUR_NS),
                "end_ns": START_NS + int(end * HOUR_NS),
                "measurement": "link",
                "point_budget": 100_000,
                "raw_span_seconds": 86_400,
            } | window


def answers(plane: Plane) -> list[bytes]:
    return [plane.series_json(**query, **NOW) for query in queries()]


@pytest.mark.parametrize("seed", range(3))
def test_f4_d13_reads_again_and_again_answer_as_a_first_read(plane: Plane, seed: int) -> None:
    dice = random.Random(seed)
    bodies = [batch(dice, number) for number in range(BATCHES)]
    compactions = {dice.randrange(BATCHES) for _ in range(2)}
    deletes = {dice.randrange(BATCHES): dice.randrange(5) * HOUR_NS for _ in range(2)}
    twin = Plane.in_memory("acme")
    for number, body in enumerate(bodies):
        for each in (plane, twin):
            each.write_json(body, **NOW)
            if number in deletes:
                start_ns = START_NS + deletes[number]
                assert each.delete(start_ns, start_ns + HOUR_NS // 2, entities=ENTITIES[:2])
        if number in compactions:
            plane.compact(whole=True, **NOW)
        if number % 4 == 3:
            answers(plane)
    expected = answers(twin)
    assert sum(series["point_count"] for series in json.loads(expected[0])["series"]) > 500
    for _ in range(READS):
        assert answers(plane) == expected
    newest = {"freshness_ns": 2 * HOUR_NS, "as_of_ns": END_NS - HOUR_NS}
    assert plane.latest_json(**newest, **NOW) == twin.latest_json(**newest, **NOW)
