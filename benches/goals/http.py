"""Figures of the whole HTTP write path."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benches.goals.compaction import Writing, compaction_line
from benches.goals.table import Line, ms
from benches.harness.servers import CONNECTIONS
from benches.inputs import fleet, sent

if TYPE_CHECKING:
    from benches.goals.effort import Effort
    from benches.harness.servers import Driven


def http_lines(effort: Effort, service: Driven, body_only: Driven, plain_rate: float) -> list[Line]:
    """The whole HTTP path, durable and sealed."""
    drives: dict[str, list[dict]] = {"service": [], "body only": []}
    writing = Writing(sent.AGAIN, sent.again().bodies)
    for driven in (service, body_only):
        driven.drive(CONNECTIONS, effort.drive_seconds / 2)
    for _ in range(effort.drive_rounds):
        drives["service"].append(service.drive(CONNECTIONS, effort.drive_seconds))
        drives["body only"].append(body_only.drive(CONNECTIONS, effort.drive_seconds))
        writing.measure()

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
        compaction_line("those records", service, writing),
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
