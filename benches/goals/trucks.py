"""Figures of the second workload, and of the first one out of order, beside those of the first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import orjson

from benches.engine import plain
from benches.goals.effort import new_plane
from benches.goals.engine import HOUR_BODIES, each, parse_only
from benches.goals.table import Line, rate
from benches.harness.measure import alternate, cpu_seconds
from benches.harness.paths import DATA
from benches.inputs import fleet, trucks
from fleetcast._core import Plane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benches.goals.effort import Effort

RECEIVED_NS = int(trucks.START.timestamp() + 86_400) * 1_000_000_000


def order_lines(effort: Effort) -> list[Line]:
    """Parsing alone where nothing comes in the order of the body before."""
    bodies = list(fleet.bodies(effort.bodies))
    parse = parse_only()

    def per_second(bodies: Iterable[bytes]) -> Callable[[], float]:
        work = each(parse, list(bodies))
        work()
        return lambda: effort.bodies * fleet.BODY_RECORDS / cpu_seconds(work)

    rates = alternate(
        effort.rounds,
        {
            "in order": per_second(bodies),
            "entities": per_second(fleet.with_entities_shuffled(bodies)),
            "fields": per_second(fleet.with_fields_shuffled(bodies)),
        },
    )
    return [
        Line.at_least(
            f"parse, {name} shuffled, records per CPU second",
            rates[name], "in order", rates["in order"], goal,
        )
        for name, goal in (("entities", 0.8), ("fields", 0.6))
    ]  # fmt: skip


def cpu_lines(effort: Effort) -> list[Line]:
    """Records of trucks per CPU second in one process.

    One truck in twenty has never been seen, but where bodies are parsed alone.
    """
    stream = trucks.bodies((effort.rounds + 1) * effort.bodies)
    rounds = iter(lambda: list(itertools.islice(stream, effort.bodies)), [])
    bodies = list(rounds)
    records = effort.bodies * trucks.BODY_RECORDS
    parser = plain.Parser("bench")
    disk, memory = new_plane("trucks"), Plane.in_memory("bench")

    def per_second(function: Callable[[bytes], object]) -> Callable[[], float]:
        mine = iter(bodies)
        each(function, next(mine))()
        return lambda: records / cpu_seconds(each(function, next(mine)))

    rates = alternate(
        effort.rounds,
        {
            "parse": per_second(
                parse_only(list(map(trucks.conflicting, itertools.chain(*bodies))))
            ),
            "orjson": per_second(orjson.loads),
            "plain": per_second(lambda body: parser.columns(body, RECEIVED_NS)),
            "engine": per_second(disk.write_json),
            "memory": per_second(memory.write_json),
        },
    )
    return [
        Line.at_least(
            "trucks: parse + validate + columns, records per CPU second",
            rates["parse"], "orjson.loads", rates["orjson"], 2,
        ),
        Line.at_least(
            "trucks: bytes to committed, sealed block, records per CPU second",
            rates["engine"], "plain Python, no storage", rates["plain"], 3,
        ),
        Line("trucks: the same on the memory twin", rate(rates["memory"])),
    ]  # fmt: skip


def size_lines() -> list[Line]:
    """Bytes that a value of an hour takes, in the log and compacted: of the fleet, and of trucks.

    One truck in twenty is new by the end of the hour. Compacted is everything that lies in the
    store's directory, names included.
    """
    lines = []
    works = {
        "fleet": fleet.bodies(HOUR_BODIES),
        "trucks": trucks.bodies(HOUR_BODIES, joining=0.05 / HOUR_BODIES),
    }
    for name, bodies in works.items():
        folder = f"bytes-{name}"
        plane = new_plane(folder)
        for body in bodies:
            plane.write_json(body)
        stats = plane.stats()
        plane.compact(whole=True)
        files = [path.stat() for path in (DATA / folder).rglob("*") if path.is_file()]
        segments = [path.stat() for path in (DATA / folder / "segments").rglob("*")]
        lines += [
            Line(f"{name}: bytes per value in the log", bytes_each(stats.log_bytes, stats.values)),
            Line(
                f"{name}: bytes per value compacted, segments alone",
                bytes_each(sum(file.st_size for file in segments), stats.values),
            ),
            Line(
                f"{name}: bytes per value compacted, everything",
                bytes_each(sum(file.st_blocks * 512 for file in files), stats.values),
            ),
        ]
        plane.close()
    return lines


def bytes_each(total: int, values: int) -> str:
    return f"{total / values:.3f} B"


def truck_lines(effort: Effort) -> list[Line]:
    """All of them."""
    return [*order_lines(effort), *cpu_lines(effort), *size_lines()]
