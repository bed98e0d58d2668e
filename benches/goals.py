"""The project's goals for its figures, each as a ratio to a reference in the same run.

    python benches/goals.py [--markdown FILE] [--quick]

Ours and the references take turns, round after round, and the medians are compared, so that what
disturbs the machine disturbs both. `docs/benchmarks.md` says what each line means.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

import fleet
import plain
from fleetcast._core import Plane, Refused
from measure import alternate, cpu_seconds, synced_append_seconds, wall_seconds
from servers import CONNECTIONS, Driven, Getter, running_body_only, running_service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DATA = Path(__file__).parent.parent / "target" / "bench-data"
MASTER_KEY = bytes(range(32))
VALUES_PER_RECORD = len(fleet.FIELDS)
HOUR_BODIES = 3_600 // fleet.STEP_SECONDS
WIDE_ENTITIES = 100_000
SERIES_ENTITIES = 16


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    bodies: int
    drive_rounds: int
    drive_seconds: float
    acknowledgements: int
    topology_rounds: int
    series_rounds: int


FULL = Effort(15, 32, 5, 4.0, 400, 15, 200)
QUICK = Effort(3, 8, 2, 1.0, 60, 3, 20)


@dataclass(frozen=True)
class Line:
    """One row of the table; without `goal` it is there for orientation."""

    figure: str
    ours: str
    reference: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None

    @staticmethod
    def at_least(figure: str, ours: float, reference: str, value: float, goal: float) -> Line:
        """A rate that should be `goal` times the reference's."""
        ratio = ours / value
        text = f">= {goal:g}x" if goal >= 1 else f">= {goal:.0%}"
        return Line(figure, rate(ours), f"{reference}: {rate(value)}", ratio, text, ratio >= goal)

    @staticmethod
    def at_most(figure: str, ours: float, reference: str, value: float, goal: float) -> Line:
        """A time that should be no more than `goal` times the reference's."""
        ratio = ours / value
        met = ratio <= goal
        return Line(figure, ms(ours), f"{reference}: {ms(value)}", ratio, f"<= {goal:g}x", met)

    def cells(self) -> list[str]:
        """The row as text."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        met = {None: "", True: "met", False: "missed"}[self.met]
        return [self.figure, self.ours, self.reference, ratio, self.goal, met]


def rate(per_second: float) -> str:
    return f"{per_second / 1_000:,.0f} k/s"


def ms(seconds: float) -> str:
    return f"{seconds * 1_000:.2f} ms"


def new_plane(name: str) -> Plane:
    """A fresh plane on the disk of the repository."""
    Plane.create(str(DATA / name), MASTER_KEY)
    return Plane.open(str(DATA / name), MASTER_KEY, "bench")


def each(function: Callable[[bytes], object], bodies: Iterable[bytes]) -> Callable[[], None]:
    def work() -> None:
        for body in bodies:
            function(body)

    return work


def parse_only() -> Callable[[bytes], None]:
    """Parsing, validation and columns of a body of `fleet.bodies`; see `conflicting_body`."""
    plane = Plane.in_memory("bench")
    plane.write_json(fleet.conflicting_body())

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


def http_lines(effort: Effort, service: Driven, body_only: Driven, plain_rate: float) -> list[Line]:
    """The whole HTTP path, durable and sealed."""
    drives: dict[str, list[dict]] = {"service": [], "body only": []}
    for driven in (service, body_only):
        driven.drive(CONNECTIONS, effort.drive_seconds / 2)
    for _ in range(effort.drive_rounds):
        drives["service"].append(service.drive(CONNECTIONS, effort.drive_seconds))
        drives["body only"].append(body_only.drive(CONNECTIONS, effort.drive_seconds))

    def records_per(seconds: str, name: str) -> float:
        per_second = [drive["requests"] / drive[seconds] for drive in drives[name]]
        return statistics.median(per_second) * fleet.BODY_RECORDS

    cpu = {name: records_per("server_cpu_seconds", name) for name in drives}
    wall = {name: records_per("seconds", name) for name in drives}
    busy = statistics.median(
        drive["client_cpu_seconds"] / drive["seconds"] for drive in drives["service"]
    )
    return [
        Line.at_least(
            "whole HTTP path, records per server CPU second",
            cpu["service"], "plain Python, no storage", plain_rate, 4,
        ),
        Line.at_least(
            "whole HTTP path, records per server CPU second",
            cpu["service"], "handler that only reads the body", cpu["body only"], 0.45,
        ),
        Line.at_least(
            "whole HTTP path, records per second of wall time",
            wall["service"], "handler that only reads the body", wall["body only"], 0.45,
        ),
        Line("client's share of one CPU meanwhile", f"{busy:.0%}"),
    ]  # fmt: skip


def http_acknowledgement_lines(
    effort: Effort, service: Driven, body_only: Driven, reference: float
) -> list[Line]:
    """Latency of one write with one client, over HTTP."""
    p50: dict[str, list[float]] = {"service": [], "body only": []}
    for _ in range(effort.drive_rounds):
        p50["service"].append(service.drive(1, effort.drive_seconds / 2)["p50_seconds"])
        p50["body only"].append(body_only.drive(1, effort.drive_seconds / 2)["p50_seconds"])
    ours, bare = statistics.median(p50["service"]), statistics.median(p50["body only"])
    return [
        Line.at_most(
            "acknowledgement p50, one client, over HTTP",
            ours, "append + fdatasync + parse", reference, 3,
        ),
        Line("p50 of the handler that only reads the body", ms(bare)),
    ]  # fmt: skip


def load(address: str, key: str, bodies: Iterable[bytes]) -> None:
    """Posts bodies one after the other."""
    from http.client import HTTPConnection  # noqa: PLC0415 - only here, and slow to import

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


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe(effort: Effort) -> str:
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} x {processor()}, Linux "
        f"{platform.release()}, Python {platform.python_version()}, orjson {orjson.__version__}; "
        f"{len(next(fleet.bodies(1))) / fleet.BODY_RECORDS:.0f}-byte records, "
        f"{effort.rounds} rounds of {effort.bodies} bodies; load before the run {load:.1f}"
    )


HEAD = ["figure", "ours", "reference", "ratio", "goal", ""]


def as_text(lines: list[Line]) -> str:
    rows = [HEAD, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def as_markdown(lines: list[Line], description: str) -> str:
    rows = [HEAD, ["---", "---:", "---", "---:", "---", "---"], *(line.cells() for line in lines)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{description}\n\n{table}\n"


def measure(effort: Effort, parts: str) -> list[Line]:
    lines: list[Line] = []
    plain_rate = acknowledgement = 1.0
    if "cpu" in parts:
        more, plain_rate = cpu_lines(effort)
        lines += more
    if "ack" in parts:
        more, acknowledgement = acknowledgement_lines(effort)
        lines += more
    if "size" in parts:
        lines += size_lines()
    with running_service(DATA / "service") as (service, keys):
        if "http" in parts:
            with running_body_only() as (process, address):
                driven = Driven(service.process.pid, service.address, keys["writes"])
                body_only = Driven(process, address, "none")
                lines += http_lines(effort, driven, body_only, plain_rate)
                lines += http_acknowledgement_lines(effort, driven, body_only, acknowledgement)
                driven.close()
                body_only.close()
        if "topology" in parts:
            lines += topology_lines(effort, service.address, keys["wide"])
        if "series" in parts:
            lines += series_lines(effort, service.address, keys["hour"])
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markdown", type=Path, help="write the table there as well")
    parser.add_argument("--quick", action="store_true", help="few rounds: does it work?")
    parser.add_argument("--parts", default="cpu,ack,size,http,topology,series")
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    description = describe(effort)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    try:
        lines = measure(effort, options.parts)
    finally:
        shutil.rmtree(DATA, ignore_errors=True)
    print(description)
    print()
    print(as_text(lines))
    if options.markdown is not None:
        options.markdown.write_text(as_markdown(lines, description))
    return 0


if __name__ == "__main__":
    sys.exit(main())
