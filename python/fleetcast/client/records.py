"""Telemetry records as protobuf (`protos/fleet/telemetry/v1/telemetry.proto`), and back."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from fleetcast.client.times import SECOND_NS
from fleetcast.engine import encode_protobuf
from fleetcast.protobuf import delimited, fields, integers, messages, signed, texts

Record = Mapping[str, Any]
"""A mapping with `measurement`, `time`, `tags` and `fields`, as in the JSON of `POST /telemetry`.

`time` is a `datetime` (UTC if it has no zone), its ISO 8601 text, or nanoseconds since 1970 as
`int`.

Example: `{"measurement": "link", "time": "2026-03-01T00:00:00Z", "tags": {"entity_id": "l1"},
"fields": {"snr_db": 12.5}}`.
"""

_RECORDS = 1
_MEASUREMENT, _TIME, _TAGS, _FIELDS = 1, 2, 3, 4
_KEY, _VALUE = 1, 2
_SECONDS, _NANOS = 1, 2
_NUMBER, _BOOL, _TEXT, _INT = 1, 2, 3, 4
_DOUBLE = struct.Struct("<d")


def encode_record(record: Record) -> bytes:
    """Encodes a record as a field of a `WriteRequest`. Joined fields make a request.

    Raises `KeyError` if a part is missing, `TypeError` or `ValueError` if no record can hold a
    value.
    """
    return encode_protobuf((record,))[0]


def split(request: bytes) -> list[bytes]:
    """Splits a `WriteRequest` into its records, each as `encode_record` returns it."""
    return [delimited(_RECORDS, record) for record in messages(request, _RECORDS)]


def is_request(data: bytes) -> bool:
    """Returns true if the bytes are a `WriteRequest` with records. The records are not decoded."""
    try:
        return bool(data) and b"".join(split(data)) == data
    except ValueError:
        return False


def decode_records(request: bytes) -> list[dict[str, Any]]:
    """Decodes the records of a `WriteRequest`; times are nanoseconds since 1970.

    Raises `ValueError` if the bytes are not a `WriteRequest`.
    """
    return [_record(message) for message in messages(request, _RECORDS)]


def _record(message: bytes) -> dict[str, Any]:
    # Protobuf merges the parts of a message by joining their bytes.
    time = integers(b"".join(messages(message, _TIME)))
    tags = messages(message, _TAGS)
    entries = messages(message, _FIELDS)
    return {
        "measurement": _last_text(message, _MEASUREMENT),
        "time": time.get(_SECONDS, 0) * SECOND_NS + time.get(_NANOS, 0),
        "tags": {_last_text(tag, _KEY): _last_text(tag, _VALUE) for tag in tags},
        "fields": {
            _last_text(entry, _KEY): _value(b"".join(messages(entry, _VALUE))) for entry in entries
        },
    }


def _last_text(message: bytes, number: int) -> str:
    return "".join(texts(message, number)[-1:])


def _value(message: bytes) -> bool | int | float | str | None:
    """Returns the value of a `FieldValue`; if the message holds several values, the last value."""
    value: bool | int | float | str | None = None
    for number, read in fields(message):
        if isinstance(read, int):
            if number == _BOOL:
                value = bool(read)
            elif number == _INT:
                value = signed(read)
        elif number == _TEXT:
            value = read.decode()
        elif number == _NUMBER and len(read) == _DOUBLE.size:
            (value,) = _DOUBLE.unpack(read)
    return value
