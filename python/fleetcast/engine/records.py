"""Encodes records of Python as the body of a write."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from fleetcast._core import encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def encode_records(records: Iterable[Mapping[str, object]]) -> bytes:
    """Encodes records as the JSON body of a write; `datetime` values become ISO 8601 text.

    Raises `ValueError` for NaN and infinities, `TypeError` for values that JSON cannot express.
    """
    rows = list(records)
    body = encode_json(rows, datetimes=True)
    if body is None:
        body = json.dumps(rows, allow_nan=False, default=_encode_datetime).encode()
    return body


def _encode_datetime(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    message = f"a {type(value).__name__} cannot be written as telemetry"
    raise TypeError(message)
