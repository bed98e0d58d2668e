"""Stored rows as a lazy frame of polars, which reads only what a query asks for.

Example: `scan(plane, start="2026-03-01", end="2026-03-02").filter(entity_id="l1").collect()`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fleetcast.client import Client
from fleetcast.engine import Engine, Plane, time_ns
from fleetcast.extras import naming_the_extra

with naming_the_extra():
    from polars.io.plugins import register_io_source

from fleetcast.polars.choice import Choice
from fleetcast.polars.rows import StoredRows
from fleetcast.polars.sources import PlaneSource, ServiceSource

if TYPE_CHECKING:
    from datetime import datetime

    import polars as pl

    from fleetcast.polars.sources import RowSource

__all__ = ["scan"]


def scan(
    source: Plane | Engine | Client,
    *,
    start: datetime | int | str,
    end: datetime | int | str,
    tenant: str | None = None,
    measurement: str | None = None,
) -> pl.LazyFrame:
    """Returns the rows with `start <= time < end` as a lazy frame.

    The rows are of a plane, of the `tenant` of an engine, or of the tenant of a client's key. A
    client needs the address that `Client.scan` needs.

    Columns: `time` (Datetime in ns, UTC), `measurement` (Categorical), `entity_id` (String), `tags`
    (Map from String to String), then a column for each known field, of one `measurement` or of all.
    A field has the name that `Plane.scan` gives it.

    The engine decodes only the columns, times, measurements, entities and values of tags that a
    query needs, and stops after the rows of `head`. Conditions that reach it compare a column with
    values by `==`, `is_in`, and for `time` also by `<`, `<=`, `>`, `>=` and `is_between`, joined by
    `&`. Others work as well, on the rows that were read. Each `collect` reads the store as it is.

    Raises `ValueError` for a bad time and for an engine without a tenant; `StoreError`, or the
    errors of `Client.scan`.

    Example: `rows.filter(pl.col("tags").map.get("site") == "north").select("time", "snr_db")`.
    """
    rows = StoredRows(
        _source(source, tenant), partial(Choice, time_ns(start), time_ns(end), measurement)
    )
    return register_io_source(rows.read, schema=rows.schema, explain_name="fleetcast")


def _source(source: Plane | Engine | Client, tenant: str | None) -> RowSource:
    if isinstance(source, Client):
        return ServiceSource(source)
    if isinstance(source, Plane):
        return PlaneSource(source)
    if tenant is None:
        message = "an engine has many tenants: give tenant=…"
        raise ValueError(message)
    return PlaneSource(source.plane(tenant, tenant))
