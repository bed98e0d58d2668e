"""Rows of the workload as the JSON of `POST /telemetry` and as line protocol."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from fleetcast.engine import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetcast.bench.rows import SentRow

_ESCAPED = re.compile(r"[ ,=]")


def json_text(row: SentRow) -> str:
    """Returns one record of a JSON batch."""
    record = {
        "measurement": row.measurement,
        "time": format_time(row.time_ns),
        "tags": dict(row.tags),
        "fields": dict(row.fields),
    }
    return json.dumps(record, separators=(",", ":"))


def json_body(rows: Iterable[SentRow]) -> bytes:
    """Returns a batch in JSON."""
    return ("[" + ",".join(map(json_text, rows)) + "]").encode()


def lines(rows: Iterable[SentRow]) -> bytes:
    """Returns a batch in line protocol, with times in nanoseconds."""
    return "".join(map(_line, rows)).encode()


def _line(row: SentRow) -> str:
    tags = ",".join(f"{_plain(name)}={_plain(value)}" for name, value in row.tags)
    fields = ",".join(f"{_plain(name)}={value}" for name, value in row.fields)
    return f"{row.measurement},{tags} {fields} {row.time_ns}\n"


def _plain(name: str) -> str:
    """Escapes the characters that end a name in line protocol."""
    return _ESCAPED.sub(r"\\\g<0>", name)
