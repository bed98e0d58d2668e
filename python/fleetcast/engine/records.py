"""Encodes records of Python as the body of a write."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from fleetcast._core import encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_REFUSED = (TypeError, ValueError)  # of Python's encoder
_DEPTH = 2  # of names in a record, such as `fields.snr_db`


def encode_records(records: Iterable[Mapping[str, object]]) -> bytes:
    """Encodes records as the JSON body of a write; `datetime` values become ISO 8601 text.

    Raises `ValueError` for NaN and infinities, `TypeError` for values that JSON cannot express. A
    note of the error names the record.

    Example: `encode_records([{"measurement": "link", "time": now, "tags": {"entity_id": "l1"},
    "fields": {"snr_db": 12.5}}])`.
    """
    return encode_rows(list(records))


def encode_rows(rows: list[Any], first: int = 0, *, datetimes: bool = True) -> bytes:
    """Encodes records as `encode_records` does; notes count them from `first`.

    Without `datetimes`, raises `TypeError` for a `datetime`. Example of a note: `record 3:
    fields.snr_db`.
    """
    body = encode_json(rows, datetimes=datetimes)
    if body is None:
        default = _encode_datetime if datetimes else None
        encode = partial(json.dumps, allow_nan=False, default=default)
        try:
            body = encode(rows).encode()
        except _REFUSED as error:
            _name_the_record(error, rows, first, encode)
            raise
    return body


def _name_the_record(
    error: Exception, rows: Sequence[object], first: int, encode: Callable[[object], str]
) -> None:
    """Adds a note to an error: the first record, counted from `first`, that JSON cannot express."""
    for index, row in enumerate(rows, first):
        if _is_refused(row, encode):
            error.add_note(f"record {index}: {_place(row, encode) or 'not a record'}")
            return


def _place(row: object, encode: Callable[[object], str]) -> str:
    """Returns the member of a record that JSON cannot express, and the name in it if it has one."""
    names: list[str] = []
    while isinstance(row, dict) and len(names) < _DEPTH:
        name, row = next(item for item in row.items() if _is_refused(dict([item]), encode))
        names.append(str(name))
    return ".".join(names)


def _is_refused(value: object, encode: Callable[[object], str]) -> bool:
    try:
        encode(value)
    except _REFUSED:
        return True
    return False


def _encode_datetime(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    message = f"a {type(value).__name__} cannot be written as telemetry"
    raise TypeError(message)
