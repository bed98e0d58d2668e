"""A tenant's telemetry as input of the features: rows of entities before an issue time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fleetcast.engine import stored_link_rows
from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import Features, features, observed_at, snr
from fleetcast.forecast.rows import NO_ROWS, Rows
from fleetcast.forecast.series import DAYS as HISTORY_DAYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family

_MARGIN_MINUTES = 60
"""Features use whole windows, the first of which may begin earlier."""
_LINKS_AT_ONCE = 32
_POOLS_AT_ONCE = 8
"""Entities whose rows are in memory at once: an hour of a link, a week of a pool."""
_WEEKS_AT_ONCE = 128
"""Pools whose windows of a week are computed together."""


def rows_before(
    plane: Plane,
    family: Family,
    entity_ids: Sequence[str],
    issued_ns: int,
    first_issued_ns: int | None = None,
) -> dict[str, Rows]:
    """All rows that forecasts use, issued from `first_issued_ns` to `issued_ns`.

    Entities without rows are left out. Without `first_issued_ns` there is one issue time. Rows of
    links are means, and the newest as they were sent. Raises `StoreError`.
    """
    first_ns = issued_ns if first_issued_ns is None else first_issued_ns
    if family is SNR:
        return _by_entity(entity_ids, stored_link_rows(plane, entity_ids, first_ns, issued_ns))
    start_ns = first_ns - (family.history_minutes + _MARGIN_MINUTES) * MINUTE_NS
    return _rows(plane, family, entity_ids, start_ns, issued_ns)


def features_of(
    plane: Plane, family: Family, entity_ids: Sequence[str], issued_ns: int
) -> Features:
    """Features of a forecast issued at an instant. Raises `StoreError`.

    Rows of only a few entities are in memory at once, because a pool may have any number in a week.
    An entity without telemetry in the model's input window costs little.
    """
    if family is SNR:
        return snr.stored(plane, entity_ids, issued_ns)

    def rows_of(some: Sequence[str]) -> Iterator[Rows]:
        for few in _chunks(some, _POOLS_AT_ONCE):
            rows = rows_before(plane, family, few, issued_ns)
            yield from (rows.get(entity_id, NO_ROWS) for entity_id in few)

    issued = np.array([issued_ns])
    weeks = _chunks(entity_ids, _WEEKS_AT_ONCE)
    parts = [features(family, rows_of(some), issued) for some in weeks]
    return Features(
        issued,
        np.concatenate([part.matrix for part in parts]),
        np.concatenate([part.errors for part in parts]),
        np.concatenate([part.context for part in parts]),
    )


def history_of(
    plane: Plane, family: Family, entity_ids: Sequence[str], days_ns: Sequence[int]
) -> Iterator[tuple[slice, list[Rows]]]:
    """Yields rows that states of pools are fitted to, for days that begin at `days_ns` [entities].

    Yields the places of some pools, and their rows. Raises `StoreError`.
    """
    for first in range(0, len(entity_ids), _POOLS_AT_ONCE):
        some = slice(first, first + _POOLS_AT_ONCE)
        start_ns = min(days_ns[some]) - HISTORY_DAYS * 1440 * MINUTE_NS
        rows = _rows(plane, family, entity_ids[some], start_ns, max(days_ns[some]))
        yield some, [rows.get(entity_id, NO_ROWS) for entity_id in entity_ids[some]]


def truths_of(
    plane: Plane,
    family: Family,
    entity_ids: Sequence[str],
    issued_ns: int,
    horizon_minutes: int,
) -> list[float]:
    """The truth of forecasts at one horizon, NaN if it did not come. Raises `StoreError`."""
    end_ns = issued_ns + horizon_minutes * MINUTE_NS
    # The distance between a pool's intervals follows from the days before.
    back_minutes = (
        family.step_minutes if family is SNR else horizon_minutes + family.history_minutes
    )
    start_ns = end_ns - back_minutes * MINUTE_NS
    truths: list[float] = []
    for some in _chunks(entity_ids, _LINKS_AT_ONCE if family is SNR else _POOLS_AT_ONCE):
        rows = _rows(plane, family, some, start_ns, end_ns)
        entities = [rows.get(entity_id, NO_ROWS) for entity_id in some]
        truths += observed_at(family, entities, issued_ns, horizon_minutes).tolist()
    return truths


def _chunks(entity_ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(entity_ids), size):
        yield entity_ids[first : first + size]


def tags_of(plane: Plane, family: Family, entity_ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """The tags of each entity's newest row, without its id. Raises `StoreError`."""
    freshness_ns = family.history_minutes * MINUTE_NS
    stream = plane.latest_frame(
        family.measurement, entity_ids=entity_ids, fields=[], freshness_ns=freshness_ns
    )
    frame = pl.DataFrame(stream)
    found = {}
    for entity_id, text in zip(frame["entity_id"], frame["tags"], strict=True):
        tags = json.loads(text)
        tags.pop("entity_id", None)
        found[entity_id] = tags
    return found


def _rows(
    plane: Plane, family: Family, entity_ids: Sequence[str], start_ns: int, end_ns: int
) -> dict[str, Rows]:
    """Rows of a family's target."""
    arrays = plane.series_arrays(
        entity_ids=entity_ids,
        start_ns=start_ns,
        end_ns=end_ns,
        measurement=family.measurement,
        fields=(family.target,),
    )
    return _by_entity(entity_ids, arrays)


def _by_entity(
    entity_ids: Sequence[str], arrays: tuple[list[int], bytes, dict[str, bytes]]
) -> dict[str, Rows]:
    rows, times, channels = arrays
    times_ns = np.frombuffer(times, "<i8")
    values = {name: np.frombuffer(channel, "<f8") for name, channel in channels.items()}
    ends = np.cumsum(rows, dtype=np.int64)
    return {
        entity_id: Rows(times_ns[start:end], {name: v[start:end] for name, v in values.items()})
        for entity_id, start, end in zip(entity_ids, ends - rows, ends, strict=True)
        if start < end
    }
