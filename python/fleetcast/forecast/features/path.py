"""Where the other end of a link stands, and where it will: from its orbit, or from how it moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.features.minutes import Minutes
    from fleetcast.forecast.rows import Floats, Instants

_LOOK_BACK_MINUTES = 30
_NEEDED_MINUTES = 5
_RIDGE = 1e-6
"""Keeps the fit of few minutes solvable; of many it changes nothing that matters."""


@dataclass(frozen=True)
class Path:
    """Arrays of one shape; what is not known is NaN."""

    elevation_deg: Floats
    range_km: Floats


class Track(Protocol):
    """Knows where the satellite at the other end of a link will be."""

    def path(self, issued_ns: Instants, ahead_minutes: NDArray[np.int64]) -> Path:
        """The path so long after each issue time [times, ahead], from what was known at it.

        NaN where it knows nothing.
        """


def paths(minutes: Minutes, issued_ns: Instants, track: Track | None) -> tuple[Path, Path]:
    """The path at the issue times [times], and at the horizons after them [times, horizons]."""
    ahead = np.array([0, *SNR.horizons_minutes])
    moved = _extrapolated(minutes, issued_ns, ahead)
    if track is not None:
        known = track.path(issued_ns, ahead)
        moved = Path(
            np.where(np.isnan(known.elevation_deg), moved.elevation_deg, known.elevation_deg),
            np.where(np.isnan(known.range_km), moved.range_km, known.range_km),
        )
    return (
        Path(moved.elevation_deg[:, 0], moved.range_km[:, 0]),
        Path(moved.elevation_deg[:, 1:], moved.range_km[:, 1:]),
    )


def _extrapolated(minutes: Minutes, issued_ns: Instants, ahead: NDArray[np.int64]) -> Path:
    """The direction of the last half hour, each component carried on as a parabola in time.

    Where the slant range was measured, it is what the position in km is carried on with.
    """
    now = minutes.place(issued_ns)
    measured = ~np.isnan(minutes.range_km)
    scaled = minutes.path * np.where(measured, minutes.range_km, 1.0)[:, None]
    columns = [reduce.windows(column, now, _LOOK_BACK_MINUTES) for column in scaled.T]
    positions = np.stack(columns, axis=-1)  # [times, minutes, 3]
    ranged = reduce.windows(measured.astype(float), now, _LOOK_BACK_MINUTES) > 0
    seen = ~np.isnan(positions[..., 0])
    # Minutes with and without a range do not mix.
    with_range = (seen & ranged).sum(1) >= _NEEDED_MINUTES
    used = seen & (ranged == with_range[:, None])
    when = (np.arange(_LOOK_BACK_MINUTES) + 0.5) / _LOOK_BACK_MINUTES - 1
    powers = when[:, None] ** np.arange(3)  # [minutes, 3]
    weighted = used[..., None] * powers
    normal = np.einsum("tmi,mj->tij", weighted, powers) + _RIDGE * np.eye(3)
    right = np.einsum("tmi,tmc->tic", weighted, np.where(used[..., None], positions, 0.0))
    fitted = np.linalg.solve(normal, right)  # [times, power, component]
    later = (ahead / _LOOK_BACK_MINUTES)[:, None] ** np.arange(3)
    position = np.einsum("ai,tic->tac", later, fitted)
    distance = np.linalg.norm(position, axis=-1)
    unknown = (used.sum(1) < _NEEDED_MINUTES)[:, None]
    sine = np.clip(position[..., 2] / np.maximum(distance, 1e-12), -1.0, 1.0)
    elevation = np.where(unknown, np.nan, np.degrees(np.arcsin(sine)))
    return Path(elevation, np.where(unknown | ~with_range[:, None], np.nan, distance))
