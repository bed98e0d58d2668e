"""Path of the other end of a link, now and ahead, by its orbit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants


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
