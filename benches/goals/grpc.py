"""Figures of the gRPC write path, beside HTTP and beside a handler that does nothing."""

from __future__ import annotations

import json
import statistics
import subprocess
from typing import TYPE_CHECKING

from benches.goals.table import Line
from benches.harness.measure import alternate, cpu_seconds
from benches.harness.paths import DATA, ROOT
from benches.harness.servers import CONNECTIONS, grpc_driven, http_driven, running_noop
from benches.inputs import fleet
from benches.inputs.messages import MESSAGE_RECORDS, WriteRequest, message, request
from benches.inputs.sent import messages
from fleetcast._core import Plane, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benches.goals.effort import Effort
    from benches.harness.servers import Driven
    from tests.service.service import Service

SMALL_RECORDS = fleet.BODY_RECORDS
LARGE_RECORDS = MESSAGE_RECORDS
_DECODE = "cargo run --quiet --release --locked --package fleetcast-fuzz --example decode --"


def decoder_lines(effort: Effort) -> list[Line]:
    """Messages to columns in one process, and the same bytes to the generated classes' objects."""
    large = [message(seed) for seed in range(2)]
    records = len(large) * MESSAGE_RECORDS
    plane = Plane.in_memory("bench")
    plane.write_json(fleet.conflicting_body())
    # The spellings of its series in protobuf, without the field that will conflict.
    known = json.loads(next(fleet.bodies(1)))
    for each in known:
        del each["fields"][fleet.FIELDS[-1]]
    plane.write_protobuf(request(known))

    def columns() -> None:
        for body in large:
            try:
                plane.write_protobuf(body, batch_records_max=MESSAGE_RECORDS)
            except Refused as refusal:
                assert refusal.args[0] == "field_type_conflict"  # noqa: PT017 - no test
            else:
                raise AssertionError

    def objects() -> None:
        for body in large:
            WriteRequest.FromString(body)

    columns()
    prost = prost_rates(large)
    rates = alternate(
        effort.rounds,
        {
            "columns": lambda: records / cpu_seconds(columns),
            "objects": lambda: records / cpu_seconds(objects),
            "core": lambda: next(prost),
            "prost": lambda: next(prost),
        },
    )
    return [
        Line.at_least(
            "protobuf: decode + validate + columns, records per CPU second",
            rates["columns"], "generated Python classes (upb)", rates["objects"], 10,
        ),
        Line.at_least(
            "the same, from Rust", rates["core"], "prost", rates["prost"], 10
        ),
    ]  # fmt: skip


def prost_rates(bodies: list[bytes]) -> Iterator[float]:
    """In turn, the core's records per CPU second, called from Rust, and those of prost."""
    files = [DATA / f"message-{at}.binpb" for at in range(len(bodies))]
    for file, body in zip(files, bodies, strict=True):
        file.write_bytes(body)
    while True:
        command = [*_DECODE.split(), *map(str, files)]
        answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        core, prost = map(float, answer.stdout.split())
        yield core
        yield prost


def grpc_lines(effort: Effort, service: Service, key: str) -> list[Line]:
    """Durable and sealed, by message size; HTTP and the idle handler take turns with it."""
    process, ready = service.process.pid, service.ready
    drives: dict[str, list[dict]] = {"http": [], "small": [], "large": [], "noop": []}
    with running_noop() as (noop, noop_ready):
        driven: dict[str, Driven] = {
            "http": http_driven(process, service.address, key),
            "small": grpc_driven(process, ready, key, messages(SMALL_RECORDS)),
            "large": grpc_driven(process, ready, key, messages(LARGE_RECORDS)),
            "noop": grpc_driven(noop, noop_ready, key, messages(LARGE_RECORDS)),
        }
        for each in driven.values():
            each.drive(CONNECTIONS, effort.drive_seconds / 2)
        for _ in range(effort.drive_rounds):
            for name, each in driven.items():
                drives[name].append(each.drive(CONNECTIONS, effort.drive_seconds))
        for each in driven.values():
            each.close()
    records = {"http": fleet.BODY_RECORDS, "small": SMALL_RECORDS}
    rates = {
        name: statistics.median(drive["requests"] / drive["server_cpu_seconds"] for drive in those)
        * records.get(name, LARGE_RECORDS)
        for name, those in drives.items()
    }
    figure = "gRPC, {:,}-record messages, records per server CPU second"
    small, large = figure.format(SMALL_RECORDS), figure.format(LARGE_RECORDS)
    http, noop_name = "HTTP JSON, 1,000-record bodies", "handler that does nothing"
    return [
        Line.at_least(small, rates["small"], http, rates["http"], 1.2),
        Line.at_least(large, rates["large"], http, rates["http"], 1.7),
        Line.at_least(large, rates["large"], noop_name, rates["noop"], 0.5),
    ]
