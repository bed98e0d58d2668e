"""Days of pools. Each pool's day begins at a time of its own, so that fits spread over the day."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from fleetcast.forecast.features.demand import DAY
from fleetcast.forecast.features.windows import STEP_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Instants


def starts(entity_id: str, issued_ns: Instants) -> NDArray[np.int64]:
    """Starts of the pool's days with these issue times, in windows since the epoch, ascending.

    The start follows from the id alone, so the service and a backtest have the same days. Example:
    a pool's days begin at 07:15 UTC. An issue time at 07:00 then belongs to the day before.
    """
    begin = crc32(entity_id.encode()) % DAY
    return np.unique((issued_ns // STEP_NS - begin) // DAY) * DAY + begin
