"""A link's samples on a grid of minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants, Rows

BLOCK = 5
"""Minutes of a block, aligned to the epoch: long windows are looked at in blocks."""


@dataclass(frozen=True)
class Minutes:
    """Means per minute from minute `first` (counted from the epoch, a multiple of a block) on.

    `snr` [minutes] is in dB; `path` [minutes, 3] is the direction to the other end as east, north,
    up, of unit length; `range_km` [minutes]. What no sample gives is NaN.
    """

    first: int
    snr: Floats
    path: Floats
    range_km: Floats

    @classmethod
    def around(cls, rows: Rows, issued_ns: Instants) -> Minutes:
        """All that forecasts issued at these times, and their targets, look at."""
        ahead = max(SNR.horizons_minutes)
        first = int(issued_ns.min()) // MINUTE_NS - SNR.history_minutes - BLOCK
        first -= first % BLOCK
        count = int(issued_ns.max()) // MINUTE_NS + ahead - first
        count += -count % BLOCK
        elevation, azimuth = (
            np.radians(rows.fields.get(name, np.full(len(rows.times_ns), np.nan)))
            for name in ("elevation_deg", "azimuth_deg")
        )
        directions = (
            np.cos(elevation) * np.sin(azimuth),
            np.cos(elevation) * np.cos(azimuth),
            np.sin(elevation),
        )
        minutes = rows.times_ns // MINUTE_NS - first
        path = np.stack([_means(minutes, part, count) for part in directions], axis=-1)
        return cls(
            first,
            _means(minutes, rows.fields.get("snr_db"), count),
            path / np.linalg.norm(path, axis=-1, keepdims=True),
            _means(minutes, rows.fields.get("slant_range_km"), count),
        )

    def place(self, times_ns: Instants) -> NDArray[np.int64]:
        """The index of the minute that starts at each time."""
        return times_ns // MINUTE_NS - self.first

    def blocks(self) -> Floats:
        """Means of the minutes of each block."""
        return reduce.mean(self.snr.reshape(-1, BLOCK))

    def moves(self) -> Floats:
        """Mean size of the step from one minute to the next, per block; dB."""
        steps = np.abs(np.diff(self.snr, prepend=np.nan))
        return reduce.mean(steps.reshape(-1, BLOCK))

    def last_value_errors(self, horizon: int) -> Floats:
        """What a forecast of the last value was wrong by, issued at the start of each block.

        The last value is the newest of the five minutes before.
        """
        last = np.concatenate([[np.nan], reduce.filled_forward(self.snr, BLOCK - 1)[:-1]])
        issues = np.arange(0, len(self.snr), BLOCK)
        errors: Floats = reduce.at(self.snr, issues + horizon - 1) - last[issues]
        return errors


def _means(minutes: NDArray[np.int64], values: Floats | None, count: int) -> Floats:
    if values is None:
        return np.full(count, np.nan)
    wanted = np.isfinite(values) & (minutes >= 0) & (minutes < count)
    if not wanted.any():
        return np.full(count, np.nan)
    places, values = minutes[wanted], values[wanted]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    samples = np.diff(starts, append=len(places))
    result = np.full(count, np.nan)
    result[places[starts]] = np.add.reduceat(values, starts) / samples
    return result
