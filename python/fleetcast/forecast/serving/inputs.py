"""A tenant's telemetry as the features want it: rows of entities before an issue time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.rows import rows_by_entity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.engine import Interval, Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Rows

_MARGIN_MINUTES = 60
"""Features look at whole blocks of minutes or windows, the first of which may begin earlier."""
_PATH_MINUTES = 60
_PATH_FIELDS = ("elevation_deg", "azimuth_deg", "slant_range_km")


def rows_before(
    plane: Plane, family: Family, entity_ids: Sequence[str], issued_ns: int
) -> dict[str, Rows]:
    """All that a forecast issued at `issued_ns` looks at, of the entities that have any.

    Means of minutes where a link's signal is looked at for days; everything else as it came.
    Raises `StoreError`.
    """
    if family is not SNR:
        frame = _frame(plane, family, entity_ids, issued_ns, family.fields)
    else:
        signal = _frame(plane, family, entity_ids, issued_ns, (family.target,), "1m")
        start_ns = issued_ns - _PATH_MINUTES * MINUTE_NS
        path = _frame(plane, family, entity_ids, issued_ns, _PATH_FIELDS, start_ns=start_ns)
        frame = pl.concat([signal, path], how="diagonal")
    return rows_by_entity(frame, family.fields)


def rows_between(
    plane: Plane, family: Family, entity_id: str, start_ns: int, end_ns: int
) -> Rows | None:
    """An entity's rows as they came, for the truth of a forecast. Raises `StoreError`."""
    frame = _frame(plane, family, [entity_id], end_ns, (family.target,), start_ns=start_ns)
    return rows_by_entity(frame, family.fields).get(entity_id)


def tags_of(plane: Plane, family: Family, entity_ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """The tags of each entity's newest row, without its id. Raises `StoreError`."""
    freshness_ns = family.history_minutes * MINUTE_NS
    frame = pl.DataFrame(plane.latest_frame(family.measurement, freshness_ns=freshness_ns))
    wanted = frame.filter(pl.col("entity_id").is_in(list(entity_ids)))
    found = {}
    for entity_id, text in zip(wanted["entity_id"], wanted["tags"], strict=True):
        tags = json.loads(text)
        tags.pop("entity_id", None)
        found[entity_id] = tags
    return found


def _frame(
    plane: Plane,
    family: Family,
    entity_ids: Sequence[str],
    end_ns: int,
    fields: Sequence[str],
    interval: Interval | None = None,
    *,
    start_ns: int | None = None,
) -> pl.DataFrame:
    if start_ns is None:
        start_ns = end_ns - (family.history_minutes + _MARGIN_MINUTES) * MINUTE_NS
    return pl.DataFrame(
        plane.series_frame(
            entity_ids=entity_ids,
            start_ns=start_ns,
            end_ns=end_ns,
            measurement=family.measurement,
            fields=fields,
            interval=interval,
            agg=None if interval is None else "mean",
        )
    )
