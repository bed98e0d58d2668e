"""The fleet's records as protobuf messages, made by the generated classes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from benches.inputs import fleet
from tests.grpc.messages import (
    SECOND_NS,
    WriteRequest,
    encode,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "SECOND_NS",
    "WriteRequest",
    "classes_encoded",
    "encode",
    "message",
    "record",
    "request",
    "rows_of",
]

MESSAGE_RECORDS = 10_000
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def message(turn: int, records: int = MESSAGE_RECORDS) -> bytes:
    """A `WriteRequest` of as many records; those of different turns lie behind one another."""
    bodies = records // fleet.BODY_RECORDS
    start = fleet.START + timedelta(seconds=turn * bodies * fleet.STEP_SECONDS)
    return request(each for body in fleet.bodies(bodies, start) for each in rows_of(body))


def rows_of(body: bytes) -> list[dict]:
    """Records of a JSON body."""
    return json.loads(body)


def request(records: Iterable[dict]) -> bytes:
    """A `WriteRequest` of records as JSON has them."""
    return encode(*map(_record, records))


def _record(each: dict):
    since = datetime.fromisoformat(each["time"]) - _EPOCH
    time_ns = since // timedelta(microseconds=1) * 1_000
    assert time_ns % SECOND_NS % 1_000_000 == 0
    fields = {name: float(value) for name, value in each["fields"].items()}
    entity = each["tags"].pop("entity_id")
    return record(time_ns, entity, each["measurement"], each["tags"], fields)


def classes_encoded(records: Iterable[dict]) -> list[bytes]:
    """Records, times in nanoseconds, each as a `WriteRequest` of its own by the generated classes.

    It is the shortest way through them: no check but of what kind a value is.
    """
    return [_class_encoded(each) for each in records]


def _class_encoded(each: dict) -> bytes:
    request = WriteRequest()
    message = request.records.add()
    message.measurement = each["measurement"]
    message.time.seconds, message.time.nanos = divmod(each["time"], SECOND_NS)
    message.tags.update(each["tags"])
    fields = message.fields
    for name, value in each["fields"].items():
        if isinstance(value, bool):
            fields[name].bool_value = value
        elif isinstance(value, int):
            fields[name].int_value = value
        elif isinstance(value, float):
            fields[name].number_value = value
        else:
            fields[name].string_value = value
    return request.SerializeToString()
