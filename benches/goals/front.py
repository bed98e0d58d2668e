"""Figures of the way from a socket to a committed block, beside those of an earlier version.

Both services, and handlers that do nothing on servers of the same kind, take turns. What is counted
is the CPU of all processes of a service but the maintenance process, and then with it.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benches.goals.acknowledgements import Appends
from benches.goals.compaction import Writing
from benches.goals.engine import parse_only
from benches.goals.reads import load
from benches.goals.table import Line, ms, rate
from benches.harness.measure import alternate, wall_seconds
from benches.harness.paths import DATA
from benches.harness.servers import (
    CONNECTIONS,
    Getter,
    grpc_driven,
    http_driven,
    running_body_only,
    running_noop,
    running_service,
)
from benches.inputs import fleet, sent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benches.goals.effort import Effort
    from benches.harness.servers import Driven, service

    Drives = Mapping[str, list[dict]]

OURS, BEFORE, NOTHING = "ours", "before", "nothing"
STATIONS = 1_000
STATION_RECORDS = 100
SECOND = 1.0
_THOUSAND = (
    (sent.AGAIN, "the fleet"),
    (sent.ONWARD, "16,000 entities that go on"),
    (sent.TRUCKS, "trucks"),
)
_TEN = ((sent.SMALL, "the fleet"), (sent.SMALL_TRUCKS, "trucks"))


@dataclass
class Side:
    """A running service and the keys of its tenants."""

    running: service.Service
    keys: dict[str, str]

    def http(self, stream: str) -> Driven:
        return http_driven(
            self.running.process.pid, self.running.address, self.keys[stream], stream
        )

    def grpc(self, tenant: str, stream: sent.Stream) -> Driven:
        ready, process = self.running.ready, self.running.process.pid
        return grpc_driven(process, ready, self.keys[tenant], stream)


def front_lines(effort: Effort, before: Path | None) -> list[Line]:
    """All of them; `before` is the folder of the earlier version's package, if there is one."""
    with ExitStack() as stack:
        sides = {OURS: Side(*stack.enter_context(running_service(DATA / "front")))}
        if before is not None:
            earlier = running_service(DATA / "before", before)
            sides[BEFORE] = Side(*stack.enter_context(earlier))
        body_only = stack.enter_context(running_body_only())
        lines: list[Line] = []
        for stream, what in _THOUSAND:
            lines += thousand_lines(effort, sides, body_only, stream, what)
        for stream, what in _TEN:
            lines += ten_lines(effort, sides, body_only, stream, what)
        lines += acknowledgement_lines(effort, sides)
        lines += read_lines(effort, sides)
        noop, noop_ready = stack.enter_context(running_noop())

        def nothing(stream: sent.Stream) -> Driven:
            return grpc_driven(noop, noop_ready, "none", stream)

        for records, goal in ((10_000, 0.6), (1_000, 0.5)):
            lines += message_lines(effort, sides, nothing, records, goal)
        lines += station_lines(effort, sides, nothing)
    return lines


def in_turns(rounds: int, works: Mapping[str, Callable[[], dict]]) -> dict[str, list[dict]]:
    """Drives of each, round after round; the first round warms up and does not count."""
    for work in works.values():
        work()
    drives: dict[str, list[dict]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            drives[name].append(work())
    return drives


def driving(driven: Mapping[str, Driven], seconds: float) -> dict[str, Callable[[], dict]]:
    return {
        name: lambda each=each: each.drive(CONNECTIONS, seconds) for name, each in driven.items()
    }


def measuring(writing: Writing) -> Callable[[], dict]:
    """The engine's turn, which keeps its own figures."""

    def engine() -> dict:
        writing.measure()
        return {}

    return engine


def per_cpu_second(drives: list[dict]) -> float:
    """Requests, the median of the rounds."""
    return statistics.median(drive["requests"] / drive["server_cpu_seconds"] for drive in drives)


def closed(driven: Mapping[str, Driven]) -> None:
    for each in driven.values():
        each.close()


def with_compaction(driven: Mapping[str, Driven], rates: Mapping[str, float]) -> dict[str, float]:
    """Requests per CPU second of the sides when compaction is counted, once it rests."""
    return {
        name: 1 / (1 / rates[name] + each.compaction_cpu_seconds() / each.requests)
        for name, each in driven.items()
        if name != NOTHING
    }


def beside(figure: str, rates: Mapping[str, float], records: int, goal: float | None) -> Line:
    """A rate of ours in records, beside that of the version before."""
    ours = rates[OURS] * records
    reference, ratio = "", None
    if BEFORE in rates:
        reference, ratio = f"before: {rate(rates[BEFORE] * records)}", rates[OURS] / rates[BEFORE]
    if goal is None:
        return Line(figure, rate(ours), reference, ratio)
    return Line(figure, rate(ours), reference, ratio, f">= {goal / 1e6:g} M/s", ours >= goal)


def all_driven(
    sides: Mapping[str, Side], body_only: tuple[int, str], stream: str
) -> dict[str, Driven]:
    """The sides and a handler that only reads the body, each for this stream."""
    process, address = body_only
    nothing = http_driven(process, address, "none", stream)
    return {name: side.http(stream) for name, side in sides.items()} | {NOTHING: nothing}


def thousand_lines(
    effort: Effort, sides: Mapping[str, Side], body_only: tuple[int, str], stream: str, what: str
) -> list[Line]:
    """Bodies of a thousand records."""
    driven = all_driven(sides, body_only, stream)
    source = sent.SENT[stream]()
    writing = Writing(f"front-{stream}", source.bodies)
    works = driving(driven, effort.drive_seconds)
    drives = in_turns(effort.drive_rounds, {**works, "engine": measuring(writing)})
    rates = {name: per_cpu_second(drives[name]) for name in driven}
    counted = with_compaction(driven, rates)
    closed(driven)
    records = source.records
    name = f"HTTP, 1,000 records a body, {what}"
    engine_rate = 1_000 / writing.seconds_per_thousand()
    wall = statistics.median(d["requests"] / d["seconds"] for d in drives[OURS]) * records
    busy = statistics.median(d["client_cpu_seconds"] / d["seconds"] for d in drives[OURS])
    return [
        beside(f"{name}: records per server CPU second", rates, records, 2.0e6),
        beside(f"{name}: the same, compaction counted", counted, records, 1.6e6),
        Line.at_least(
            f"{name}: share of the engine", rates[OURS] * records,
            "engine alone", engine_rate, 0.65,
        ),
        Line(
            f"{name}: over a handler that only reads the body", rate(rates[OURS] * records),
            rate(rates[NOTHING] * records), rates[OURS] / rates[NOTHING],
        ),
        Line(f"{name}: records per second, client's share of a CPU", rate(wall), f"{busy:.0%}"),
    ]  # fmt: skip


def ten_lines(
    effort: Effort, sides: Mapping[str, Side], body_only: tuple[int, str], stream: str, what: str
) -> list[Line]:
    """Bodies of ten records, by requests."""
    driven = all_driven(sides, body_only, stream)
    drives = in_turns(effort.drive_rounds, driving(driven, effort.drive_seconds))
    rates = {name: per_cpu_second(drives[name]) for name in driven}
    closed(driven)
    name = f"HTTP, 10 records a body, {what}: requests per server CPU second"
    lines = [
        Line(
            f"{name}, beside a handler that only reads the body", rate(rates[OURS]),
            rate(rates[NOTHING]), rates[OURS] / rates[NOTHING],
        )
    ]  # fmt: skip
    if BEFORE in rates:
        lines.append(Line.at_least(name, rates[OURS], "before", rates[BEFORE], 4))
    return lines


def acknowledgement_lines(effort: Effort, sides: Mapping[str, Side]) -> list[Line]:
    """Latency of one client's writes, beside the disk and the parser."""
    driven = {name: side.http(sent.AGAIN) for name, side in sides.items()}
    bodies = sent.again().bodies
    writing = Writing("acknowledged", bodies)
    size, parse = writing.block_bytes(), parse_only()
    appends = Appends(DATA / "append.reference", size)

    def reference() -> dict:
        appended = appends.work(effort.drive_seconds / 2)
        parsed = [wall_seconds(lambda body=body: parse(body)) for body in bodies]
        return {"p50_seconds": statistics.median(appended) + statistics.median(parsed)}

    works: dict[str, Callable[[], dict]] = {
        name: lambda each=each: each.drive(1, effort.drive_seconds / 2)
        for name, each in driven.items()
    }
    drives = in_turns(effort.drive_rounds, {**works, "reference": reference})
    closed(driven)
    p50 = {
        name: statistics.median(drive["p50_seconds"] for drive in those)
        for name, those in drives.items()
    }
    name = f"append + fdatasync of {size / 1_000:.1f} kB, + parse"
    figure = "acknowledgement p50, one client, over HTTP"
    lines = [Line.at_most(figure, p50[OURS], name, p50["reference"], 2)]
    if BEFORE in p50:
        ratio = p50[BEFORE] / p50["reference"]
        lines.append(Line(f"{figure}, before", ms(p50[BEFORE]), name, ratio))
    return lines


def read_lines(effort: Effort, sides: Mapping[str, Side]) -> list[Line]:
    """Means of one entity's last hours, beside what the same application answers to anybody."""
    end = datetime.now(UTC).replace(microsecond=0)
    asked = {
        "entity_id": fleet.entity_id(61),
        "measurement": fleet.MEASUREMENT,
        "start": f"{end - timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}",
        "end": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "interval": "1h",
        "agg": "mean",
    }
    works = {}
    getters = []
    for name, side in sides.items():
        address, key = side.running.address, side.keys["hour"]
        load(address, key, fleet.bodies(3 * 360, end - timedelta(hours=3)))
        getter = Getter(address, key)
        getters.append(getter)
        works[name] = lambda getter=getter: getter.get("/topology/series", **asked)
        works[f"{name}, constant"] = lambda getter=getter: getter.get("/health")
    for _ in range(16):  # a read prepares for those that come again
        for work in works.values():
            work()
    seconds = alternate(effort.series_rounds, works)
    for getter in getters:
        getter.close()
    figure = "1 entity, last 3 h, 1 h mean, whole HTTP answer, p50"
    constant = "constant of the same application"
    lines = [Line.at_most(figure, seconds[OURS], constant, seconds[f"{OURS}, constant"], 1.5)]
    if BEFORE in sides:
        reference = seconds[f"{BEFORE}, constant"]
        ratio = seconds[BEFORE] / reference
        before = ms(seconds[BEFORE])
        lines.append(Line(f"{figure}, before", before, f"{constant}: {ms(reference)}", ratio))
    return lines


def message_lines(
    effort: Effort,
    sides: Mapping[str, Side],
    nothing: Callable[[sent.Stream], Driven],
    records: int,
    goal: float,
) -> list[Line]:
    """Messages of gRPC beside a handler that does nothing, compaction counted."""
    stream, tenant = sent.messages(records), f"messages-{records}"
    driven = {name: side.grpc(tenant, stream) for name, side in sides.items()}
    driven[NOTHING] = nothing(stream)
    writing = Writing(f"messages-{records}", stream.bodies, records)
    works = driving(driven, effort.drive_seconds)
    drives = in_turns(effort.drive_rounds, {**works, "engine": measuring(writing)})
    rates = {name: per_cpu_second(drives[name]) for name in driven}
    counted = with_compaction(driven, rates)
    closed(driven)
    figure = f"gRPC, {records:,}-record messages, records per server CPU second"
    reference = "handler that does nothing"
    nothing_rate = rates[NOTHING] * records
    lines = [
        Line.at_least(
            f"{figure}, compaction counted", counted[OURS] * records, reference, nothing_rate, goal
        ),
        beside(figure, rates, records, None),
        Line(
            f"{figure}: share of the engine", rate(rates[OURS] * records),
            f"engine alone: {rate(1_000 / writing.seconds_per_thousand())}",
            rates[OURS] * records * writing.seconds_per_thousand() / 1_000,
        ),
    ]  # fmt: skip
    if BEFORE in counted:
        ratio = counted[BEFORE] / rates[NOTHING]
        ours = rate(counted[BEFORE] * records)
        lines.append(
            Line(
                f"{figure}, compaction counted, before", ours,
                f"{reference}: {rate(nothing_rate)}", ratio,
            )
        )  # fmt: skip
    return lines


def station_lines(
    effort: Effort, sides: Mapping[str, Side], nothing: Callable[[sent.Stream], Driven]
) -> list[Line]:
    """Warm channels that write once a second each, at the default settings."""
    stream = sent.stations(STATIONS, STATION_RECORDS)
    driven = {name: side.grpc("stations", stream) for name, side in sides.items()}
    driven[NOTHING] = nothing(stream)
    seconds = 3 * effort.drive_seconds
    drives = in_turns(
        max(effort.drive_rounds // 2, 1),
        {
            name: lambda each=each: each.drive(STATIONS, seconds, SECOND)
            for name, each in driven.items()
        },
    )
    closed(driven)

    def median(name: str, key: str, per: str | None = None) -> float:
        return statistics.median(d[key] / (d[per] if per else 1) for d in drives[name])

    cpu = {name: median(name, "server_cpu_seconds", "requests") for name in driven}
    figure = f"gRPC, {STATIONS:,} channels, {STATION_RECORDS} records a second each"
    lines = [
        Line.at_most(
            f"{figure}: server CPU a message", cpu[OURS],
            "handler that does nothing", cpu[NOTHING], 2,
        )
    ]  # fmt: skip
    if BEFORE in cpu:
        ratio = cpu[BEFORE] / cpu[NOTHING]
        lines.append(
            Line(f"{figure}: server CPU a message, before", ms(cpu[BEFORE]), "as above", ratio)
        )
    for quantile, bound in (("p50_seconds", 0.05), ("p99_seconds", 0.25)):
        times = {name: median(name, quantile) for name in driven}
        others = [f"{name}: {ms(times[name])}" for name in driven if name != OURS]
        lines.append(
            Line(
                f"{figure}: {quantile.partition('_')[0]}", ms(times[OURS]), ", ".join(others),
                None, f"<= {bound * 1e3:.0f} ms", times[OURS] <= bound,
            )
        )  # fmt: skip
    shares = [f"{name}: {median(name, 'client_cpu_seconds', 'seconds'):.0%}" for name in driven]
    lines.append(Line(f"{figure}: client's share of a CPU", shares[0], ", ".join(shares[1:])))
    return lines
