"""Figures of the two read endpoints."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import numpy as np
import orjson

from benches.goals.effort import new_plane
from benches.goals.table import Line, ms
from benches.harness.measure import alternate, wall_seconds
from benches.harness.servers import Getter, running_body_only
from benches.inputs import fleet, trucks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benches.goals.effort import Effort
    from fleetcast._core import Plane

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
            "engine": lambda: wall_seconds(lambda: plane.latest_json(freshness_ns=day_ns)),
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
    """`GET /topology/series` of some entities: an hour, and what dashboards ask of a long log."""
    now = int(time.time()) // fleet.STEP_SECONDS * fleet.STEP_SECONDS
    start = datetime.fromtimestamp(now, UTC) - timedelta(seconds=3_600 + 60)
    bodies = list(fleet.bodies(HOUR_BODIES, start))
    load(address, key, bodies)
    plane = new_plane("hour")
    for body in bodies:
        plane.write_json(body)
    getters = [Getter(address, key) for _ in range(4)]
    asked = {
        "entity_id": [fleet.entity_id(number * 61) for number in range(SERIES_ENTITIES)],
        "measurement": fleet.MEASUREMENT,
        "start": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "end": f"{start + timedelta(seconds=3_600):%Y-%m-%dT%H:%M:%SZ}",
    }
    lines = hour_lines(effort, getters, plane, asked, start)
    load(address, key, fleet.bodies(2 * HOUR_BODIES, start - timedelta(hours=2)))
    lines += dashboard_lines(effort, getters, asked, start)
    for getter in getters:
        getter.close()
    return lines


def hour_lines(
    effort: Effort, getters: list[Getter], plane: Plane, asked: dict, start: datetime
) -> list[Line]:
    """A raw hour and means of it, over HTTP and of the engine in `plane`, which has the same."""
    start_ns = int(start.timestamp()) * 1_000_000_000
    end_ns = start_ns + 3_600 * 1_000_000_000

    def get(getter: Getter = getters[0], **more: object) -> float:
        return getter.get("/topology/series", **asked, **more)

    def engine(**more: object) -> float:
        return wall_seconds(
            lambda: plane.series_json(
                entity_ids=asked["entity_id"],
                measurement=asked["measurement"],
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
    http = seconds["http"]
    figure = f"GET /topology/series, {SERIES_ENTITIES} entities, 1 h raw"
    return [
        Line.at_most(f"{figure}, whole answer", http, reference, seconds["orjson"], 2),
        Line(f"{figure}, p50", ms(http), "", None, "<= 5 ms", http <= 0.005),
        Line.at_most("the same, engine call", seconds["engine"], reference, seconds["orjson"], 2),
        Line("1-minute means instead, whole answer", ms(seconds["minutes"])),
        Line("1-minute means instead, engine call", ms(seconds["minutes, engine"])),
    ]


def dashboard_lines(
    effort: Effort, getters: list[Getter], asked: dict, start: datetime
) -> list[Line]:
    """Means of three hours, which end within one, and the newest sample of each entity, of a store
    whose log is long; as they are asked for over and over."""
    hours = asked | {
        "start": f"{start - timedelta(hours=2, minutes=-20):%Y-%m-%dT%H:%M:%SZ}",
        "end": f"{start + timedelta(minutes=50):%Y-%m-%dT%H:%M:%SZ}",
        "interval": "1h",
        "agg": "mean",
    }
    queries = {
        "hours": lambda getter: getter.get("/topology/series", **hours),
        "newest": lambda getter: getter.get("/topology", freshness_seconds=86_400),
    }
    answers = prepared_answers(getters, queries)
    newest = answers["newest"]
    assert len(answers["hours"]["series"]) == SERIES_ENTITIES
    assert len(newest["entities"]) == fleet.BODY_RECORDS
    with running_body_only() as (_, constant_address):
        constant = Getter(constant_address, "none")
        works = {name: lambda query=query: query(getters[0]) for name, query in queries.items()}
        seconds = alternate(
            effort.series_rounds,
            works
            | {
                "orjson": lambda: wall_seconds(lambda: orjson.dumps(newest)),
                "constant": lambda: constant.get("/"),
            },
        )
        constant.close()
    shape = f"{fleet.BODY_RECORDS:,} x {VALUES_PER_RECORD}"
    ratio = seconds["hours"] / seconds["constant"]
    return [
        Line(
            f"{SERIES_ENTITIES} entities, last 3 h, 1 h mean, whole answer",
            ms(seconds["hours"]),
            f"handler that returns a constant: {ms(seconds['constant'])}",
            ratio,
            "<= 0.6 ms",
            seconds["hours"] <= 0.0006,
        ),
        Line.at_most(
            f"GET /topology, {shape}, long log, whole answer",
            seconds["newest"],
            f"orjson.dumps, {len(orjson.dumps(newest)) / 1e3:.0f} kB",
            seconds["orjson"],
            2,
        ),
    ]


def prepared_answers(
    getters: list[Getter], queries: dict[str, Callable[[Getter], float]]
) -> dict[str, dict]:
    """An answer to each query, by when those who answer are prepared for more of its kind."""
    answers = {}
    for name, query in queries.items():
        for getter in getters * 3:  # each worker follows the log, and prepares for the next ones
            query(getter)
        answers[name] = orjson.loads(getters[0].body)
    return answers


def prepared_lines(effort: Effort) -> list[Line]:
    """The engine's part of reads of the last hours, out of the log and out of segments, of both
    fleets."""
    lines: list[Line] = []
    now = int(time.time()) // trucks.STEP_SECONDS * trucks.STEP_SECONDS
    start = datetime.fromtimestamp(now, UTC) - timedelta(hours=1, seconds=60)
    links = [fleet.entity_id(number * 61) for number in range(SERIES_ENTITIES)]
    driving = [f"truck_{number * 31}" for number in range(SERIES_ENTITIES)]
    workloads = {
        "links": (fleet.bodies(HOUR_BODIES, start), fleet.MEASUREMENT, links),
        "trucks": (trucks.bodies(HOUR_BODIES, start, joining=0), trucks.READINGS, driving),
    }
    for name, (bodies, measurement, ids) in workloads.items():
        plane = new_plane(f"{name}-hour")
        for body in bodies:
            plane.write_json(body)
        lines += prepared_reads(effort, plane, f"{name}, hour in the log", measurement, ids)
        plane.compact(whole=True)
        lines += prepared_reads(effort, plane, f"{name}, hour compacted", measurement, ids)
    return lines


def prepared_reads(
    effort: Effort, plane: Plane, figure: str, measurement: str, ids: list[str]
) -> list[Line]:
    """A raw hour and its means, beside the values summed up and the answer made from objects."""
    end_ns = time.time_ns() // 1_000_000_000 * 1_000_000_000
    asked = {"entity_ids": ids, "measurement": measurement, "end_ns": end_ns}
    asked["start_ns"] = end_ns - 3_500 * 1_000_000_000
    asked["point_budget"] = 100_000

    def read(**more: object) -> Callable[[], float]:
        return lambda: wall_seconds(lambda: plane.series_json(**asked, **more))

    objects = orjson.loads(plane.series_json(**asked))
    channels = [channel for each in objects["series"] for channel in each["channels"].values()]
    columns = [np.array(channel, dtype=float) for channel in channels]
    assert len(columns) >= SERIES_ENTITIES * 3
    works = {
        "raw": read(),
        "hours": read(interval="1h", agg="mean"),
        "orjson": lambda: wall_seconds(lambda: orjson.dumps(objects)),
        "numpy": lambda: wall_seconds(lambda: [np.nanmean(column) for column in columns]),
    }
    for _ in range(16):
        works["raw"]()
    seconds = alternate(effort.series_rounds, works)
    return [
        Line.at_most(
            f"{figure}, {len(ids)} entities raw, engine",
            seconds["raw"], "orjson.dumps of the answer", seconds["orjson"], 1,
        ),
        Line.at_most(
            f"{figure}, {len(ids)} entities, 1 h mean, engine",
            seconds["hours"], "numpy.nanmean of ready columns", seconds["numpy"], 0.25,
        ),
    ]  # fmt: skip
