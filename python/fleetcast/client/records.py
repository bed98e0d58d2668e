"""Telemetry records as protobuf (`protos/fleet/telemetry/v1/telemetry.proto`), and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from fleetcast.client.messages import WriteRequest
from fleetcast.client.times import SECOND_NS, time_ns
from fleetcast.protobuf import delimited, messages

Record = Mapping[str, Any]
"""`measurement`, `time`, `tags`, `fields`: as the JSON of `POST /telemetry`. `time` is a `datetime`
(UTC where it has no zone), its ISO 8601 text, or nanoseconds since 1970 as `int`."""

_RECORDS = 1
_INT64_MAX = (1 << 63) - 1


def encode_record(record: Record) -> bytes:
    """One record as a field of a `WriteRequest`: requests are made by joining them.

    Raises `KeyError` where something is missing, `TypeError` and `ValueError` for values that no
    record can hold.
    """
    request = WriteRequest()
    message = request.records.add()
    message.measurement = record["measurement"]
    message.time.seconds, message.time.nanos = divmod(time_ns(record["time"]), SECOND_NS)
    message.time.SetInParent()
    message.tags.update(record.get("tags", {}))
    fields = message.fields
    for name, value in record.get("fields", {}).items():
        if isinstance(value, bool):
            fields[name].bool_value = value
        elif isinstance(value, int) and abs(value) <= _INT64_MAX:
            fields[name].int_value = value
        elif isinstance(value, int | float):
            fields[name].number_value = value
        elif isinstance(value, str):
            fields[name].string_value = value
        else:
            problem = f"a {type(value).__name__} cannot be written as telemetry"
            raise TypeError(problem)
    encoded: bytes = request.SerializeToString(deterministic=True)
    return encoded


def split(request: bytes) -> list[bytes]:
    """The records of a `WriteRequest`, each as `encode_record` gives it."""
    return [delimited(_RECORDS, record) for record in messages(request, _RECORDS)]


def is_request(data: bytes) -> bool:
    """True for a `WriteRequest` of some records, whatever is in those."""
    try:
        return bool(data) and b"".join(split(data)) == data
    except ValueError:
        return False


def decode_records(request: bytes) -> list[dict[str, Any]]:
    """The records of a `WriteRequest`; times in nanoseconds since 1970.

    Raises `ValueError` where the bytes are no `WriteRequest`.
    """
    try:
        records = WriteRequest.FromString(request).records
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return [
        {
            "measurement": record.measurement,
            "time": record.time.seconds * SECOND_NS + record.time.nanos,
            "tags": dict(record.tags),
            "fields": {name: _value(field) for name, field in record.fields.items()},
        }
        for record in records
    ]


def _value(field: Any) -> bool | int | float | str | None:  # noqa: ANN401  a `FieldValue`
    kind = field.WhichOneof("value")
    value: bool | int | float | str | None = getattr(field, kind) if kind else None
    return value
