"""Figures of senders: lines beside JSON on the way in, and the encoders of clients."""

from __future__ import annotations

import json
import random
from datetime import datetime
from typing import TYPE_CHECKING

from benches.goals.table import Line, rate
from benches.harness.measure import alternate, cpu_seconds
from benches.inputs import fleet
from benches.inputs.lines import lines
from benches.inputs.messages import classes_encoded
from fleetcast._core import CALL_RECORDS_MAX, Plane, encode_protobuf, time_ns
from fleetcast.engine import encode_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.goals.effort import Effort

WIDE_RECORDS = 1_000
WIDE_FIELDS = 40
SNR_ENTITIES = 100


def line_lines(effort: Effort) -> list[Line]:
    """The same rows as JSON and as lines, 10,000 a batch, to the memory twin."""
    rows = [row for body in fleet.bodies(max(effort.bodies, 20)) for row in json.loads(body)]
    batches = [rows[at : at + CALL_RECORDS_MAX] for at in range(0, len(rows), CALL_RECORDS_MAX)]
    batches = [batch for batch in batches if len(batch) == CALL_RECORDS_MAX]
    rates = {}
    for name, wanted in (("fleet", batches), ("wide", [wide_records() * 10])):
        as_json = [json.dumps(batch, separators=(",", ":")).encode() for batch in wanted]
        as_lines = [lines(batch) for batch in wanted]
        planes = {kind: Plane.in_memory("bench") for kind in ("json", "lines")}

        def per_second(
            write: Callable[[bytes], object], bodies: list[bytes]
        ) -> Callable[[], float]:
            def work() -> None:
                for body in bodies:
                    write(body)

            work()
            return lambda: len(bodies) * CALL_RECORDS_MAX / cpu_seconds(work)

        def write_json(body: bytes, plane: Plane = planes["json"]) -> None:
            plane.write_json(body, batch_records_max=CALL_RECORDS_MAX)

        rates[name] = alternate(
            effort.rounds,
            {
                "lines": per_second(planes["lines"].write_lines, as_lines),
                "json": per_second(write_json, as_json),
            },
        )
    return [
        Line.at_least(
            f"write_lines, {what}, 10,000 a batch, rows per CPU second",
            rates[name]["lines"], "write_json", rates[name]["json"], 0.9,
        )
        for name, what in (("fleet", "the fleet"), ("wide", f"{WIDE_FIELDS} fields"))
    ]  # fmt: skip


def encoder_lines(effort: Effort) -> list[Line]:
    """Records as Python has them to bytes, beside the generated classes of protobuf."""
    found = []
    for what, records in (
        (f"SNR of {SNR_ENTITIES} entities", snr_records()),
        (f"{WIDE_FIELDS} fields, texts among them", wide_records()),
    ):
        with_ns = [{**record, "time": time_ns(record["time"])} for record in records]

        def per_second(work: Callable[[], object], count: int = len(records)) -> float:
            return count / cpu_seconds(work)

        def of(encode: Callable[[list], object], wanted: list) -> Callable[[], float]:
            return lambda: per_second(lambda: encode(wanted))

        rates = alternate(
            effort.rounds,
            {
                "json": of(encode_records, records),
                "protobuf": of(encode_protobuf, with_ns),
                "classes": of(classes_encoded, with_ns),
                "dumps": of(json.dumps, records),
            },
        )
        found += [
            Line.at_least(
                f"encode_protobuf, {what}, records per CPU second",
                rates["protobuf"], "generated Python classes (upb)", rates["classes"], 5,
            ),
            Line.at_least(
                f"encode_records, {what}, records per CPU second",
                rates["json"], "generated Python classes (upb)", rates["classes"], 5,
            ),
            Line("json.dumps of the same", rate(rates["dumps"])),
        ]  # fmt: skip
    return found


def snr_records() -> list[dict]:
    """Measurements of a gateway's links: five numbers and four tags."""
    return [record for body in fleet.bodies(10) for record in json.loads(body)[:SNR_ENTITIES]]


def wide_records() -> list[dict]:
    """Records of many fields, one in five a text."""
    dice = random.Random(7)
    return [
        {
            "measurement": "satellite",
            "time": f"{datetime(2026, 3, 1).isoformat()}.{at:03}Z",  # noqa: DTZ001 - zone is below
            "tags": {"entity_id": f"satellite-{at % SNR_ENTITIES:04}", "operator": "northern-sky"},
            "fields": {
                f"channel_{number:02}": f"state {dice.randrange(9)}"
                if number % 5 == 0
                else round(dice.uniform(-100, 100), 3)
                for number in range(WIDE_FIELDS)
            },
        }
        for at in range(WIDE_RECORDS)
    ]
