"""Figures of the two read endpoints."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import orjson

from benches.goals.effort import new_plane
from benches.goals.table import Line, ms
from benches.harness.measure import alternate, wall_seconds
from benches.harness.servers import Getter
from benches.inputs import fleet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benches.goals.effort import Effort

VALUES_PER_RECORD = len(fleet.FIELDS)
HOUR_BODIES = 3_600 // fleet.STEP_SECONDS
WIDE_ENTITIES = 100_000
SERIES_ENTITIES = 16


def load(address: str, key: str, bodies: Iterable[bytes]) -> None:
    """Posts bodies one after the other."""
    connection = HTTPConnection(address)
    headers = {"X-Api-Key": key, "Content-Type": "application/json"}
    for body in bodies:
        connection.request("POST", "/telemetry", body=body, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 202, content
    connection.close()


def topology_lines(effort: Effort, address: str, key: str) -> list[Line]:
    """`GET /topology` of many entities."""
    start = datetime.now(UTC) - timedelta(seconds=60)
    bodies = list(fleet.wide_bodies(WIDE_ENTITIES, start))
    load(address, key, bodies)
    plane = new_plane("wide")
    for body in bodies:
        plane.write_json(body)
    getters = [Getter(address, key) for _ in range(4)]
    day_ns = 86_400 * 1_000_000_000

    def get(getter: Getter = getters[0]) -> float:
        return getter.get("/topology", freshness_seconds=86_400)

    for getter in getters:
        get(getter)  # each worker follows the log
    objects = orjson.loads(getters[0].body)
    assert len(objects["entities"]) == WIDE_ENTITIES
    seconds = alternate(
        effort.topology_rounds,
        {
            "http": get,
            "engine": lambda: wall_seconds(lambda: plane.latest_json_chunks(freshness_ns=day_ns)),
            "orjson": lambda: wall_seconds(lambda: orjson.dumps(objects)),
        },
    )
    reference = f"orjson.dumps, {len(getters[0].body) / 1e6:.1f} MB"
    for getter in getters:
        getter.close()
    shape = f"{WIDE_ENTITIES:,} x {VALUES_PER_RECORD}"
    return [
        Line.at_most(
            f"GET /topology, {shape}, whole answer",
            seconds["http"],
            reference,
            seconds["orjson"],
            1,
        ),
        Line.at_most("the same, engine call", seconds["engine"], reference, seconds["orjson"], 1),
    ]


def series_lines(effort: Effort, address: str, key: str) -> list[Line]:
    """`GET /topology/series` of some entities of an hour."""
    now = int(time.time()) // fleet.STEP_SECONDS * fleet.STEP_SECONDS
    start = datetime.fromtimestamp(now, UTC) - timedelta(seconds=3_600 + 60)
    bodies = list(fleet.bodies(HOUR_BODIES, start))
    load(address, key, bodies)
    plane = new_plane("hour")
    for body in bodies:
        plane.write_json(body)
    getters = [Getter(address, key) for _ in range(4)]
    ids = [fleet.entity_id(number * 61) for number in range(SERIES_ENTITIES)]
    end = start + timedelta(seconds=3_600)
    asked = {
        "entity_id": ids,
        "measurement": fleet.MEASUREMENT,
        "start": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "end": f"{end:%Y-%m-%dT%H:%M:%SZ}",
    }
    start_ns = int(start.timestamp()) * 1_000_000_000
    end_ns = start_ns + 3_600 * 1_000_000_000

    def get(getter: Getter = getters[0], **more: object) -> float:
        return getter.get("/topology/series", **asked, **more)

    def engine(**more: object) -> float:
        return wall_seconds(
            lambda: plane.series_json(
                entity_ids=ids,
                measurement=fleet.MEASUREMENT,
                start_ns=start_ns,
                end_ns=end_ns,
                **more,
            )
        )

    for getter in getters:
        get(getter)
    objects = orjson.loads(getters[0].body)
    points = sum(entity["point_count"] for entity in objects["series"])
    assert points == SERIES_ENTITIES * HOUR_BODIES, points
    seconds = alternate(
        effort.series_rounds,
        {
            "http": get,
            "engine": engine,
            "orjson": lambda: wall_seconds(lambda: orjson.dumps(objects)),
            "minutes": lambda: get(interval="1m", agg="mean"),
            "minutes, engine": lambda: engine(interval="1m", agg="mean"),
        },
    )
    reference = f"orjson.dumps, {len(orjson.dumps(objects)) / 1e3:.0f} kB"
    for getter in getters:
        getter.close()
    http = seconds["http"]
    figure = f"GET /topology/series, {SERIES_ENTITIES} entities, 1 h raw"
    return [
        Line.at_most(f"{figure}, whole answer", http, reference, seconds["orjson"], 2),
        Line(f"{figure}, p50", ms(http), "", None, "<= 5 ms", http <= 0.005),
        Line.at_most("the same, engine call", seconds["engine"], reference, seconds["orjson"], 2),
        Line("1-minute means instead, whole answer", ms(seconds["minutes"])),
        Line("1-minute means instead, engine call", ms(seconds["minutes, engine"])),
    ]
