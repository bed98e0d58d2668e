"""Rows of the workload as the JSON of `POST /telemetry` and as line protocol."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from fleetcast.engine import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetcast.bench.trucks import TruckRow

NS_PER_SECOND = 1_000_000_000


def json_text(row: TruckRow) -> str:
    """Returns one record of a JSON batch."""
    tags = ",".join(f'"{name}":"{value}"' for name, value in row.tags)
    fields = ",".join(f'"{name}":{value}' for name, value in row.fields)
    head = f'{{"measurement":"{row.measurement}","time":"{time_text(row.time)}"'
    return f'{head},"tags":{{{tags}}},"fields":{{{fields}}}}}'


def json_body(rows: Iterable[TruckRow]) -> bytes:
    """Returns a batch in JSON."""
    return ("[" + ",".join(map(json_text, rows)) + "]").encode()


def lines(rows: Iterable[TruckRow]) -> bytes:
    """Returns a batch in line protocol, with times in nanoseconds."""
    return "".join(
        f"{row.measurement},{','.join(f'{name}={value}' for name, value in row.tags)}"
        f" {','.join(f'{name}={value}' for name, value in row.fields)} {row.time}000000000\n"
        for row in rows
    ).encode()


@lru_cache
def time_text(seconds: int) -> str:
    """Returns a time as ISO 8601 in UTC. Example: 1,772,323,200 is `2026-03-01T00:00:00Z`."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def seconds_of(text: str) -> int:
    """Returns the whole seconds since 1970 of a time in an answer of the service."""
    return parse_time(text) // NS_PER_SECOND
