"""Real files of a development set as records, moved in time so that they end now.

Files below the folder: `links/satellite_esno_30s.csv.gz`, `links/leo_pass_snr_1s.csv.gz`,
`links/microwave_*` (ten links), `geometry/ground_stations.csv`, and ten pools of
`pools/hosting_pools_offered_bytes_15min.parquet`. The newest hours of links and nine days of pools
are taken.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from fleetcast.cli.demo.fleet import record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from fleetcast.cli.demo.fleet import Record

_LINK_HOURS = 6
_POOL_DAYS = 9
_SERIES_MAX = 10
_MISSING_DECIBEL_METRES = -32_768
_LOST_LOCK_DB = (-10.0, 0.0)


def sampled_fleet(folder: Path, now: datetime) -> Iterator[Record]:
    """Yields the records, link by link.

    Raises `OSError`, and `OperatorError` for an unsuitable file.
    """
    import polars as pl

    from fleetcast.transfer.foreign_files import read_by_polars, read_table

    newest = now.replace(second=0, microsecond=0)
    with read_by_polars(folder, "holds a sample of another form"):
        yield from _pools(
            read_table(folder / "pools/hosting_pools_offered_bytes_15min.parquet"), newest
        )
        yield from _microwave(folder, newest)
        geostationary = read_table(folder / "links/satellite_esno_30s.csv.gz").select(
            time=pl.col("timestamp").str.to_datetime(), snr_db="esno", link=pl.lit("geo-1")
        )
        lock = geostationary.filter(~pl.col("snr_db").is_in(_LOST_LOCK_DB))
        fixed = lock.with_columns(elevation_deg=pl.lit(31.58))
        yield from _links(fixed, newest)
        passes = read_table(folder / "links/leo_pass_snr_1s.csv.gz").select(
            "elevation_deg",
            "azimuth_deg",
            "snr_db",
            time=pl.col("time").str.to_datetime(),
            link=pl.format("leo-{}", "norad"),
        )
        for (_,), one in passes.group_by("link", maintain_order=True):
            yield from _links(one.sort("time"), newest)
        yield from _stations(read_table(folder / "geometry/ground_stations.csv"), newest)


def _links(rows: pl.DataFrame, newest: datetime) -> Iterator[Record]:
    """Yields the rows of one link with `time`, `link` and its fields, oldest first."""
    end: datetime = rows["time"][-1]
    for row in rows.iter_rows(named=True):
        age = end - row.pop("time")
        if age > timedelta(hours=_LINK_HOURS):
            continue
        tags = {"entity_id": row.pop("link"), "entity_type": "link"}
        yield record("link", newest - age, tags, row)


def _microwave(folder: Path, newest: datetime) -> Iterator[Record]:
    from fleetcast.transfer.foreign_files import read_table

    received = read_table(folder / "links/microwave_rsl_decidbm_1min.parquet")
    sent = read_table(folder / "links/microwave_tsl_decidbm_1min.parquet")
    about = read_table(folder / "links/microwave_links.csv").head(_SERIES_MAX)
    minutes = _LINK_HOURS * 60
    for link in about.iter_rows(named=True):
        name = link["link_id"]
        levels = zip(received[name].tail(minutes), sent[name].tail(minutes), strict=True)
        for index, (rsl, tsl) in enumerate(levels):
            if _MISSING_DECIBEL_METRES in {rsl, tsl}:
                continue
            fields = {
                "snr_db": (rsl - tsl) / 10,
                "slant_range_km": link["length_km"],
                "elevation_deg": 0.0,
                "azimuth_deg": 0.0,
                "frequency_ghz": link["frequency_hz"] / 1e9,
                "polarization": link["polarization"],
            }
            tags = {"entity_id": f"microwave-{name}", "entity_type": "link"}
            yield record("link", newest - timedelta(minutes=minutes - 1 - index), tags, fields)


def _pools(table: pl.DataFrame, newest: datetime) -> Iterator[Record]:
    step = timedelta(minutes=15)
    count = _POOL_DAYS * 96
    window = newest - timedelta(minutes=newest.minute % 15)
    names = [name for name in table.columns if name.startswith("pool")][:_SERIES_MAX]
    for name in names:
        tags = {"entity_id": name, "entity_type": "pool"}
        for index, offered in enumerate(table[name].tail(count)):
            if offered is not None and offered == offered:  # noqa: PLR0124 - NaN is an outage
                time = window - (count - index) * step
                yield record("pool_interval", time, tags, {"offered_bytes": offered})


def _stations(table: pl.DataFrame, newest: datetime) -> Iterator[Record]:
    for row in table.iter_rows(named=True):
        name = f"{row['provider']}-{row['name']}".lower().replace(" ", "-")
        tags = {"entity_id": name, "entity_type": "ground_station"}
        fields = {
            "lat": row["lat_deg"],
            "lon": row["lon_deg"],
            "altitude_km": row["alt_m"] / 1000,
            "frequency_bands": row["frequency_bands"],
        }
        yield record("ground_station", newest, tags, fields)
