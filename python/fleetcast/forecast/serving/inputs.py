"""A tenant's telemetry as the features want it: rows of entities before an issue time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features.path import LOOK_BACK_MINUTES as PATH_MINUTES
from fleetcast.forecast.features.snr import minutes_from_ns
from fleetcast.forecast.rows import joined, rows_by_entity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.engine import Interval, Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Rows

_MARGIN_MINUTES = 60
"""Features look at whole windows, the first of which may begin earlier."""
_PATH_FIELDS = ("elevation_deg", "azimuth_deg", "slant_range_km")


def rows_before(
    plane: Plane, family: Family, entity_ids: Sequence[str], issued_ns: int
) -> dict[str, Rows]:
    """All that a forecast issued at `issued_ns` looks at, of the entities that have any.

    Of a link's signal means of minutes, and of hours where no more is looked at; everything else
    as it came. Raises `StoreError`.
    """
    start_ns = issued_ns - (family.history_minutes + _MARGIN_MINUTES) * MINUTE_NS
    if family is not SNR:
        return _rows(plane, family, entity_ids, start_ns, issued_ns, family.fields)
    signal, since_ns = (family.target,), minutes_from_ns(issued_ns)
    path_ns = issued_ns - PATH_MINUTES * MINUTE_NS
    parts = (
        _rows(plane, family, entity_ids, start_ns, since_ns, signal, "1h"),
        _rows(plane, family, entity_ids, since_ns, issued_ns, signal, "1m"),
        _rows(plane, family, entity_ids, path_ns, issued_ns, _PATH_FIELDS),
    )
    return {
        entity_id: joined([part[entity_id] for part in parts if entity_id in part])
        for entity_id in entity_ids
        if any(entity_id in part for part in parts)
    }


def rows_between(
    plane: Plane, family: Family, entity_id: str, start_ns: int, end_ns: int
) -> Rows | None:
    """An entity's rows as they came, for the truth of a forecast. Raises `StoreError`."""
    return _rows(plane, family, [entity_id], start_ns, end_ns, (family.target,)).get(entity_id)


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


def _rows(
    plane: Plane,
    family: Family,
    entity_ids: Sequence[str],
    start_ns: int,
    end_ns: int,
    fields: Sequence[str],
    interval: Interval | None = None,
) -> dict[str, Rows]:
    frame = plane.series_frame(
        entity_ids=entity_ids,
        start_ns=start_ns,
        end_ns=end_ns,
        measurement=family.measurement,
        fields=fields,
        interval=interval,
        agg=None if interval is None else "mean",
    )
    return rows_by_entity(pl.DataFrame(frame), fields)
