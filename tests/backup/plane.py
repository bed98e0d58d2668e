"""A tenant's plane, written and read without a service."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from fleetcast.backup.listing import LISTING_FILE
from fleetcast.engine import encode_records, format_time
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.engine.test_scan import exact, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fleetcast.backup.listing import Listing
    from fleetcast.engine import Plane

START_NS = 1_790_000_000_000_000_000
SECOND_NS = 1_000_000_000
ROWS = 50
NOW_NS = START_NS + 3_600_000 * SECOND_NS


def batch(number: int) -> list[dict]:
    """Every type, also without an entity, over two days."""
    return [
        {
            "measurement": "link" if row % 3 else "weather",
            "time": format_time(START_NS + (number * ROWS + row) * 300 * SECOND_NS),
            "tags": {"n": str(number)} | ({"entity_id": f"e{row % 4}"} if row % 7 else {}),
            "fields": {
                "number": number * ROWS + row,
                "noise": -0.0 if row % 5 else 1 / (number + 3),
                "up": row % 2 == 0,
                "mode": f"é{row % 3}",
            },
        }
        for row in range(ROWS)
    ]


@contextmanager
def open_plane(data: Path, tenant: str) -> Iterator[Plane]:
    with opened(DataDirectory(data), {}) as installation:
        found = installation.tenants.get(tenant)
        yield installation.engine.plane(found.account_id, found.name)


def write(data: Path, tenant: str, numbers: Iterable[int]) -> None:
    with open_plane(data, tenant) as plane:
        for number in numbers:
            plane.write_json(encode_records(batch(number)), now_ns=NOW_NS)


def content(data: Path, tenant: str) -> tuple[object, ...]:
    """Everything that can be read of a tenant: all rows in order, and the newest samples."""
    with open_plane(data, tenant) as plane:
        latest = plane.latest_json(now_ns=NOW_NS, freshness_ns=NOW_NS)
        stats = plane.stats()
        frame = pl.DataFrame(plane.scan(0, 2**62, now_ns=NOW_NS))
        rows = [(row["measurement"], row["time_ns"], *exact(row)) for row in rows_of(frame)]
    latest = latest.replace(json.dumps(tenant).encode(), b"")
    return rows, latest, stats.rows, stats.stored_rows, stats.stored_values, stats.series


def files_of(folder: Path, listing: Listing) -> list[Path]:
    """The files that make up a backup."""
    own = [file.name for file in listing.installation.values()]
    planes = [
        f"{tenant.folder}/{file.name}" for tenant in listing.tenants for file in tenant.plane.files
    ]
    return [folder / name for name in (LISTING_FILE, *own, *planes)]
