"""Telemetry records as protobuf (`protos/fleet/telemetry/v1/telemetry.proto`), and back."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from fleetcast.client.times import SECOND_NS, time_ns
from fleetcast.protobuf import delimited, double, fields, integer, messages

Record = Mapping[str, Any]
"""`measurement`, `time`, `tags`, `fields`: as the JSON of `POST /telemetry`. `time` is a `datetime`
(UTC where it has no zone), its ISO 8601 text, or nanoseconds since 1970 as `int`."""

_RECORDS, _MEASUREMENT, _TIME, _TAGS, _FIELDS = 1, 1, 2, 3, 4
_NUMBER, _BOOL, _STRING, _INT = 1, 2, 3, 4
_INT64_MAX = (1 << 63) - 1


def encode_record(record: Record) -> bytes:
    """One record as a field of a `WriteRequest`: requests are made by joining them.

    Raises `KeyError` where something is missing, `TypeError` and `ValueError` for values that no
    record can hold.
    """
    seconds, nanos = divmod(time_ns(record["time"]), SECOND_NS)
    parts = [
        delimited(_MEASUREMENT, record["measurement"]),
        delimited(_TIME, integer(1, seconds) + integer(2, nanos)),
    ]
    for key, value in record.get("tags", {}).items():
        parts.append(delimited(_TAGS, delimited(1, key) + delimited(2, value)))
    for key, value in record.get("fields", {}).items():
        parts.append(delimited(_FIELDS, delimited(1, key) + delimited(2, _value(value))))
    return delimited(_RECORDS, b"".join(parts))


def split(request: bytes) -> list[bytes]:
    """The records of a `WriteRequest`, each as `encode_record` gives it."""
    return [delimited(_RECORDS, record) for record in messages(request, _RECORDS)]


def is_request(data: bytes) -> bool:
    """Whether the bytes are a `WriteRequest` of some records, whatever is in those."""
    try:
        return bool(data) and b"".join(split(data)) == data
    except ValueError:
        return False


def decode_records(request: bytes) -> list[dict[str, Any]]:
    """The records of a `WriteRequest` that `encode_record` made; times in nanoseconds.

    Raises `ValueError` where it did not.
    """
    return [_record(message) for message in messages(request, _RECORDS)]


def _record(message: bytes) -> dict[str, Any]:
    record: dict[str, Any] = {"measurement": "", "time": 0, "tags": {}, "fields": {}}
    for number, value in fields(message):
        if not isinstance(value, bytes):  # all fields of a record are delimited
            raise ValueError(number)  # noqa: TRY004  the bytes are wrong, not the argument
        if number == _MEASUREMENT:
            record["measurement"] = value.decode()
        elif number == _TIME:
            time = dict(fields(value))
            record["time"] = _signed(time.get(1, 0)) * SECOND_NS + _signed(time.get(2, 0))
        else:
            entry = dict(fields(value))
            key, content = _text(entry.get(1, b"")), entry.get(2, b"")
            if number == _TAGS:
                record["tags"][key] = _text(content)
            elif isinstance(content, bytes):
                record["fields"][key] = _read_value(content)
    return record


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return integer(_BOOL, value)
    if isinstance(value, int):
        if abs(value) > _INT64_MAX:
            return double(_NUMBER, float(value))
        return integer(_INT, value)
    if isinstance(value, float):
        return double(_NUMBER, value)
    if isinstance(value, str):
        return delimited(_STRING, value)
    message = f"a {type(value).__name__} cannot be written as telemetry"
    raise TypeError(message)


def _read_value(message: bytes) -> bool | int | float | str | None:
    for number, value in fields(message):
        if number == _NUMBER and isinstance(value, bytes):
            return float(struct.unpack("<d", value)[0])
        if number == _STRING:
            return _text(value)
        return bool(value) if number == _BOOL else _signed(value)
    return None


def _text(value: bytes | int) -> str:
    return value.decode() if isinstance(value, bytes) else ""


def _signed(value: bytes | int) -> int:
    number = value if isinstance(value, int) else 0
    return number - (1 << 64) if number > _INT64_MAX else number
