"""Path of the other end of a link, now and ahead: from its orbit, or from its past motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import reduce
from fleetcast.forecast.features.minutes import averaged, directions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants, Rows

LOOK_BACK_MINUTES = 30
_NEEDED_MINUTES = 5
_RIDGE = 1e-6
"""Keeps a fit of few minutes solvable, and changes a fit of many minutes very little."""


@dataclass(frozen=True)
class Path:
    """Elevations and distances, arrays of one shape; NaN if unknown."""

    elevation_deg: Floats
    range_km: Floats


class Track(Protocol):
    """The orbit of the satellite at the other end of a link."""

    def path(self, issued_ns: Instants, ahead_minutes: NDArray[np.int64]) -> Path:
        """The path `ahead_minutes` after each issue time [times, ahead], as known at that time.

        NaN if the path is unknown.
        """


def paths(
    entities: Sequence[Rows], issued_ns: Instants, tracks: Sequence[Track | None]
) -> tuple[Path, Path]:
    """The path at the issue times, and at the horizons after them.

    Shapes are [entities, times] and [entities, times, horizons].
    """
    ahead = np.array([0, *SNR.horizons_minutes])
    moved = _extrapolated(entities, issued_ns, ahead)
    for entity, track in enumerate(tracks):
        if track is not None:
            known = track.path(issued_ns, ahead)
            for ours, given in (
                (moved.elevation_deg, known.elevation_deg),
                (moved.range_km, known.range_km),
            ):
                ours[entity] = np.where(np.isnan(given), ours[entity], given)
    return (
        Path(moved.elevation_deg[..., 0], moved.range_km[..., 0]),
        Path(moved.elevation_deg[..., 1:], moved.range_km[..., 1:]),
    )


def _extrapolated(entities: Sequence[Rows], issued_ns: Instants, ahead: NDArray[np.int64]) -> Path:
    """The direction of the last half hour, each component extended as a parabola in time.

    If a slant range was measured, the position in km is extended instead.
    """
    shape = (len(entities), len(issued_ns), len(ahead))
    directed = [
        i for i, rows in enumerate(entities) if {"elevation_deg", "azimuth_deg"} <= set(rows.fields)
    ]
    elevation, distance = np.full(shape, np.nan), np.full(shape, np.nan)
    if directed:
        some = _carried_on([entities[i] for i in directed], issued_ns, ahead)
        elevation[directed], distance[directed] = some.elevation_deg, some.range_km
    return Path(elevation, distance)


def _carried_on(entities: Sequence[Rows], issued_ns: Instants, ahead: NDArray[np.int64]) -> Path:
    """Path of links that report their direction."""
    now = issued_ns // MINUTE_NS
    first = int(now.min()) - LOOK_BACK_MINUTES
    count = int(now.max()) - first
    path = directions(entities, first, count)
    range_km = averaged(entities, "slant_range_km", first, count)
    measured = ~np.isnan(range_km)
    scaled = path * np.where(measured, range_km, 1.0)[..., None]
    columns = [reduce.windows(scaled[..., k], now - first, LOOK_BACK_MINUTES) for k in range(3)]
    positions = np.stack(columns, axis=-1)  # [entities, times, minutes, 3]
    ranged = reduce.windows(measured.astype(float), now - first, LOOK_BACK_MINUTES) > 0
    seen = ~np.isnan(positions[..., 0])
    # Minutes with and without a range do not mix.
    with_range = (seen & ranged).sum(-1) >= _NEEDED_MINUTES
    used = seen & (ranged == with_range[..., None])
    when = (np.arange(LOOK_BACK_MINUTES) + 0.5) / LOOK_BACK_MINUTES - 1
    powers = when[:, None] ** np.arange(3)  # [minutes, 3]
    weighted = used[..., None] * powers
    normal = np.einsum("etmi,mj->etij", weighted, powers) + _RIDGE * np.eye(3)
    right = np.einsum("etmi,etmc->etic", weighted, np.where(used[..., None], positions, 0.0))
    fitted = np.linalg.solve(normal, right)  # [entities, times, power, component]
    later = (ahead / LOOK_BACK_MINUTES)[:, None] ** np.arange(3)
    position = np.einsum("ai,etic->etac", later, fitted)
    distance = np.linalg.norm(position, axis=-1)
    unknown = (used.sum(-1) < _NEEDED_MINUTES)[..., None]
    sine = np.clip(position[..., 2] / np.maximum(distance, 1e-12), -1.0, 1.0)
    elevation = np.where(unknown, np.nan, np.degrees(np.arcsin(sine)))
    return Path(elevation, np.where(unknown | ~with_range[..., None], np.nan, distance))
