"""The project's goals for its figures, each as a ratio to a reference in the same run.

    python -m benches.goals [--markdown FILE] [--quick] [--parts cpu,grpc] [--before DIR]

Ours and the references take turns, round after round, and the medians are compared, so that what
disturbs the machine disturbs both. `docs/benchmarks.md` says what each line means. The part `front`
sets the service beside an earlier one, which `tools/before COMMIT DIR` builds.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import orjson

from benches.goals.backup import backup_lines
from benches.goals.clients import encoder_lines, line_lines
from benches.goals.columns import column_lines
from benches.goals.compaction import compaction_lines
from benches.goals.effort import FULL, QUICK, Effort
from benches.goals.engine import acknowledgement_lines, cpu_lines, size_lines
from benches.goals.front import front_lines
from benches.goals.grpc import decoder_lines, grpc_lines
from benches.goals.http import http_acknowledgement_lines, http_lines
from benches.goals.mixed import mixed_lines
from benches.goals.month import month_lines
from benches.goals.reads import prepared_lines, series_lines, topology_lines
from benches.goals.store import store_lines
from benches.goals.table import Line, as_markdown, as_text
from benches.goals.transfer import transfer_lines
from benches.goals.trucks import truck_lines
from benches.harness.paths import DATA
from benches.harness.servers import http_driven, running_body_only, running_service
from benches.inputs import fleet

PARTS = (
    "cpu,trucks,ack,size,store,backup,decoder,lines,encoders,columns,transfer,"
    "reads,http,compaction,grpc,topology,series,front,mixed,month"
)


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


def measure(effort: Effort, parts: set[str], before: Path | None) -> list[Line]:
    lines: list[Line] = []
    plain_rate = acknowledgement = 1.0
    if "cpu" in parts:
        more, plain_rate = cpu_lines(effort)
        lines += more
    if "trucks" in parts:
        lines += truck_lines(effort)
    if "ack" in parts:
        more, acknowledgement = acknowledgement_lines(effort)
        lines += more
    if "size" in parts:
        lines += size_lines()
    if "store" in parts:
        lines += store_lines(effort)
    lines += format_lines(effort, parts)
    if parts & {"http", "compaction", "grpc", "topology", "series"}:
        lines += service_lines(effort, parts, plain_rate, acknowledgement)
    if "front" in parts:
        lines += front_lines(effort, before)
    alone = {
        "mixed": mixed_lines,
        "reads": prepared_lines,
        "backup": backup_lines,
        "month": month_lines,
    }
    for part, measured in alone.items():
        if part in parts:
            lines += measured(effort)
    return lines


def format_lines(effort: Effort, parts: set[str]) -> list[Line]:
    """Figures of formats beside JSON."""
    lines: list[Line] = []
    if "decoder" in parts:
        lines += decoder_lines(effort)
    if "lines" in parts:
        lines += line_lines(effort)
    if "encoders" in parts:
        lines += encoder_lines(effort)
    if "columns" in parts:
        lines += column_lines(effort)
    if "transfer" in parts:
        lines += transfer_lines(effort)
    return lines


def service_lines(
    effort: Effort, parts: set[str], plain_rate: float, acknowledgement: float
) -> list[Line]:
    """Figures that are measured on one running service."""
    lines: list[Line] = []
    with running_service(DATA / "service") as (service, keys):
        if "http" in parts:
            with running_body_only() as (process, address):
                driven = http_driven(service.process.pid, service.address, keys["writes"])
                body_only = http_driven(process, address, "none")
                lines += http_lines(effort, driven, body_only, plain_rate)
                lines += http_acknowledgement_lines(effort, driven, body_only, acknowledgement)
                driven.close()
                body_only.close()
        if "compaction" in parts:
            lines += compaction_lines(effort, service, keys)
        if "grpc" in parts:
            lines += grpc_lines(effort, service, keys["grpc"])
        if "topology" in parts:
            lines += topology_lines(effort, service.address, keys["wide"])
        if "series" in parts:
            lines += series_lines(effort, service.address, keys["hour"])
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markdown", type=Path, help="write the table there as well")
    parser.add_argument("--quick", action="store_true", help="few rounds: does it work?")
    parser.add_argument("--parts", default=PARTS)
    parser.add_argument("--before", type=Path, metavar="DIR", help="as tools/before has built it")
    options = parser.parse_args()
    before = options.before and options.before.resolve() / "site"
    if before and not (before / "fleetcast").is_dir():
        parser.error(f"{options.before} has no package: make one by tools/before COMMIT DIR")
    effort = QUICK if options.quick else FULL
    description = describe(effort)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    try:
        lines = measure(effort, set(options.parts.split(",")), before)
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
