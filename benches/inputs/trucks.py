"""The second workload, that of `fleetcast bench`, as bodies of JSON."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fleetcast.bench.texts import json_text
from fleetcast.bench.trucks import READINGS, STEP_SECONDS, Trucks

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BODY_RECORDS", "READINGS", "START", "STEP_SECONDS", "bodies", "conflicting", "rows"]

BODY_RECORDS = 1_000
TRUCKS = 500
START = datetime(2026, 3, 1, tzinfo=UTC)


def rows(start: datetime, *, trucks: int = TRUCKS, joining: float = 0.05) -> Iterator[str]:
    """Records without end; with each ten seconds a share of the trucks is new."""
    fleet = Trucks(trucks, joining=joining, seed=42)
    return map(json_text, fleet.rows(int(start.timestamp())))


def bodies(
    count: int, start: datetime = START, *, trucks: int = TRUCKS, joining: float = 0.05
) -> Iterator[bytes]:
    """Bodies of `BODY_RECORDS` records."""
    sent = rows(start, trucks=trucks, joining=joining)
    for _ in range(count):
        yield ("[" + ",".join(itertools.islice(sent, BODY_RECORDS)) + "]").encode()


def conflicting(body: bytes) -> bytes:
    """The same records with texts for two of the numbers.

    Once it was written, `body` is refused after it was parsed to the end, its series known.
    """
    return re.sub(rb'"(latitude|fuel_state)":[-0-9.]+', rb'"\1":""', body)
