"""State of a pool on one day: its own model, and the windows that the day will need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.features.demand import DAY, WEEK
from fleetcast.forecast.series.lags import FORTNIGHT, INPUTS

if TYPE_CHECKING:
    from collections.abc import Sequence

States: TypeAlias = NDArray[np.void]
"""Records of `STATE`: [entities, days], days ascending."""

LAYOUT = 2
"""Number of the fields' layout. A new number means that all states are fitted again."""
_HORIZONS = len(DEMAND.horizons_minutes)
_FURTHEST = DAY + max(DEMAND.horizons_minutes) // DEMAND.step_minutes
"""Most windows from a day's start to the start of a window that is predicted on the day."""
WEEK_FROM = -(WEEK + DAY)
"""The first kept window of the week before, counted from the start of the day."""
FORTNIGHT_FROM = -(FORTNIGHT + 1)

# Numbers of four bytes: a state is some 2,300 bytes.
_FIELDS: list[Any] = [
    ("start", "<i4"),
    ("level", "<f4"),
    ("lowest", "<f4"),
    ("highest", "<f4"),
    ("week", "<f4", (_FURTHEST + DAY,)),
    ("fortnight", "<f4", (_FURTHEST + 1,)),
    ("coefficients", "<f4", (_HORIZONS, INPUTS + 1)),
    ("change", "<f4", (_HORIZONS, 2)),
    ("errors", "<f4", (_HORIZONS, len(DEMAND.quantiles))),
    ("weight", "<f4", (_HORIZONS,)),
]
STATE = np.dtype(_FIELDS)
"""The state of a pool on one day. All windows are logarithms.

`start` is in windows since the epoch, `level` is the mean in bytes. `lowest` and `highest` are the
bounds of all windows seen. `week` and `fortnight` are past windows that lags of the day reach.

Per horizon: `coefficients` are of the inputs and a constant, NaN if there are too few rows.
`change` is the least and greatest change from the last value. `errors` are quantiles. `weight` is
the share of this model, from 0 to 1.
"""


def encoded(state: np.void) -> bytes:
    """Encodes one state as a record."""
    return state.tobytes()


def decoded(records: Sequence[bytes]) -> States:
    """Decodes states of several entities on one day. Raises `ValueError` for other bytes."""
    return np.frombuffer(b"".join(records), STATE).reshape(len(records), -1)
