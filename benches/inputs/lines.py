"""The fleet's records as lines of InfluxDB's line protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast._core import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable


def lines(records: Iterable[dict]) -> bytes:
    """Records as JSON has them, whose names and texts need no backslash."""
    return "".join(map(_line, records)).encode()


def _line(record: dict) -> str:
    tags = "".join(f",{key}={value}" for key, value in record["tags"].items())
    fields = ",".join(f"{name}={_value(value)}" for name, value in record["fields"].items())
    return f"{record['measurement']}{tags} {fields} {parse_time(record['time'])}\n"


def _value(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
