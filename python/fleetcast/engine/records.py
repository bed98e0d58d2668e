"""Encodes records of Python as the body of a write."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fleetcast._core import encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_REFUSED = (TypeError, ValueError)  # of Python's encoder
_DEPTH = 2  # of names in a record, such as `fields.snr_db`


def encode_records(records: Iterable[Mapping[str, object]]) -> bytes:
    """Encodes records as the JSON body of a write; `datetime` values become ISO 8601 text.

    Raises `ValueError` for NaN and infinities, `TypeError` for values that JSON cannot express. A
    note of the error names the record.

    Example: `encode_records([{"measurement": "link", "time": now, "tags": {"entity_id": "l1"},
    "fields": {"snr_db": 12.5}}])`.
    """
    rows = list(records)
    body = encode_json(rows, datetimes=True)
    if body is None:
        try:
            body = _encode(rows).encode()
        except _REFUSED as error:
            name_the_record(error, rows)
            raise
    return body


def name_the_record(error: Exception, rows: Sequence[Any], first: int = 0) -> None:
    """Adds a note to an error: the first record, counted from `first`, that JSON cannot express.

    Example: `record 3: fields.snr_db`.
    """
    for index, row in enumerate(rows, first):
        if _is_refused(row):
            error.add_note(f"record {index}: {_place(row) or 'not a record'}")
            return


def _place(row: object) -> str:
    """Returns the member of a record that JSON cannot express, and the name in it if it has one."""
    names: list[str] = []
    while isinstance(row, dict) and len(names) < _DEPTH:
        name, row = next(item for item in row.items() if _is_refused(dict([item])))
        names.append(str(name))
    return ".".join(names)


def _is_refused(value: object) -> bool:
    try:
        _encode(value)
    except _REFUSED:
        return True
    return False


def _encode(value: object) -> str:
    return json.dumps(value, allow_nan=False, default=_encode_datetime)


def _encode_datetime(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    message = f"a {type(value).__name__} cannot be written as telemetry"
    raise TypeError(message)
