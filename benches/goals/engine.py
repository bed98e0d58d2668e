"""Figures of the engine in one process: CPU, latency of a write, size of what is stored."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import orjson

from benches.engine import plain
from benches.goals.effort import new_plane
from benches.goals.table import Line, ms, rate
from benches.harness.measure import alternate, cpu_seconds, synced_append_seconds, wall_seconds
from benches.harness.paths import DATA
from benches.inputs import fleet
from fleetcast._core import Plane, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benches.goals.effort import Effort

HOUR_BODIES = 3_600 // fleet.STEP_SECONDS


def each(function: Callable[[bytes], object], bodies: Iterable[bytes]) -> Callable[[], None]:
    def work() -> None:
        for body in bodies:
            function(body)

    return work


def parse_only(conflicting: Iterable[bytes] = ()) -> Callable[[bytes], None]:
    """Parsing, validation and columns of bodies with which others conflict, or one of the fleet."""
    plane = Plane.in_memory("bench")
    for body in conflicting or [fleet.conflicting_body()]:
        plane.write_json(body)

    def parse(body: bytes) -> None:
        try:
            plane.write_json(body)
        except Refused as refusal:
            assert refusal.args[0] == "field_type_conflict"  # noqa: PT017 - no test
        else:
            raise AssertionError

    return parse


def cpu_lines(effort: Effort) -> tuple[list[Line], float]:
    """Records per CPU second in one process; also the rate of plain Python."""
    bodies = list(fleet.bodies(effort.bodies))
    records = len(bodies) * fleet.BODY_RECORDS
    parser = plain.Parser("bench")
    disk, memory = new_plane("cpu"), Plane.in_memory("bench")
    block = os.urandom(65_536)
    appended = os.open(DATA / "append", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def per_second(function: Callable[[bytes], object]) -> Callable[[], float]:
        work = each(function, bodies)
        work()
        return lambda: records / cpu_seconds(work)

    rates = alternate(
        effort.rounds,
        {
            "parse": per_second(parse_only()),
            "orjson": per_second(orjson.loads),
            "plain": per_second(lambda body: parser.columns(body, time.time_ns())),
            "engine": per_second(disk.write_json),
            "memory": per_second(memory.write_json),
            "append": lambda: synced_append_seconds(appended, block),
        },
    )
    os.close(appended)
    lines = [
        Line.at_least(
            "parse + validate + columns, records per CPU second",
            rates["parse"], "orjson.loads", rates["orjson"], 5,
        ),
        Line.at_least(
            "bytes to committed, sealed block, records per CPU second",
            rates["engine"], "plain Python, no storage", rates["plain"], 8,
        ),
        Line("the same on the memory twin", rate(rates["memory"])),
        Line("64 KB append + fdatasync", ms(rates["append"])),
    ]  # fmt: skip
    return lines, rates["plain"]


def acknowledgement_lines(effort: Effort) -> tuple[list[Line], float]:
    """Latency of one write with one client, in this process."""
    bodies = list(fleet.bodies(16))
    plane, parse = new_plane("acknowledgement"), parse_only()
    for body in bodies:
        plane.write_json(body)
    stats = plane.stats()
    block = os.urandom(stats.log_bytes // stats.batches)
    appended = os.open(DATA / "append", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    turn = iter(range(1 << 30))

    def body() -> bytes:
        return bodies[next(turn) % len(bodies)]

    seconds = alternate(
        effort.acknowledgements,
        {
            "engine": lambda: wall_seconds(lambda: plane.write_json(body())),
            "append": lambda: synced_append_seconds(appended, block),
            "parse": lambda: wall_seconds(lambda: parse(body())),
        },
    )
    os.close(appended)
    reference = seconds["append"] + seconds["parse"]
    name = f"append + fdatasync of {len(block) / 1_000:.1f} kB, + parse"
    return [
        Line.at_most(
            "acknowledgement p50, one client, engine", seconds["engine"], name, reference, 3
        )
    ], reference


def size_lines() -> list[Line]:
    """Bytes that a value takes."""
    plane = new_plane("size")
    for body in fleet.bodies(HOUR_BODIES):
        plane.write_json(body)
    stats = plane.stats()
    log, stored = stats.log_bytes / stats.values, stats.stored_bytes / stats.values
    plane = new_plane("buffered")
    for body in fleet.buffered_bodies(HOUR_BODIES // 10):
        plane.write_json(body)
    buffered = plane.stats().log_bytes / plane.stats().values
    return [
        Line(
            "bytes per value in the log", f"{log:.3f} B", "8-byte raw values: 8 B", log / 8,
            "<= 1.8 B", log <= 1.8,
        ),
        Line("bytes per value on disk, the store's own included", f"{stored:.3f} B"),
        Line("bytes per value in the log, ten records per entity and body", f"{buffered:.3f} B"),
    ]  # fmt: skip
