"""Stored rows as Parquet files for a data lake, one for each day.

    python lake.py http://127.0.0.1:8086 --key acme.key --days 30 lake

The address is that of the listener for other protocols (`adapters.address`). The files are
`lake/day=2026-03-01/rows.parquet`, which polars, DuckDB and Spark read as one table with a column
`day`. Days that have a file are left alone, so run it every night.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from fleetcast import Client

DAY = timedelta(days=1)


def export(client: Client, day: datetime, lake: Path) -> Path | None:
    """Writes the file of a day, which then is whole. Returns `None` for a day without rows."""
    file = lake / f"day={day.date()}" / "rows.parquet"
    if file.exists():
        return file
    rows = client.scan(start=day, end=day + DAY)
    if rows.is_empty():
        return None
    entity = pl.col("tags").map.get("entity_id").alias("entity_id")
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_suffix(".new")
    rows.with_columns(entity).write_parquet(staged)
    return staged.replace(file)


def main() -> None:
    """Exports the days before today."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", help="http://HOST:PORT of the listener for other protocols")
    parser.add_argument("lake", type=Path, help="folder of the files")
    parser.add_argument("--key", type=Path, required=True, help="file with a key")
    parser.add_argument("--days", type=int, default=7, help="days before today")
    given = parser.parse_args()
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with Client(given.address, given.key.read_text().strip()) as client:
        for back in range(given.days, 0, -1):
            if file := export(client, today - back * DAY, given.lake):
                print(file)


if __name__ == "__main__":
    main()
