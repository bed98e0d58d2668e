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
"""Records of `STATE`: [entities, days], days ascending and the same for all entities."""

LAYOUT = 1
"""Number of the fields' layout: with another one no record is found, and all are fitted anew."""
_HORIZONS = len(DEMAND.horizons_minutes)
_FURTHEST = DAY + max(DEMAND.horizons_minutes) // DEMAND.step_minutes
"""No window that is predicted on a day begins later after its start."""
WEEK_FROM = -(WEEK + DAY)
"""The first of the windows of the week before that are kept, from the start of the day."""
FORTNIGHT_FROM = -(FORTNIGHT + 1)

# Singles: a state is some 2,300 bytes.
_FIELDS: list[Any] = [
    ("day", "<i4"),
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
"""`day` is counted from the epoch, `level` the mean in bytes; logarithms but for these.

`lowest` and `highest` are of any window seen, `week` and `fortnight` windows of the past that
lags of the day reach. Per horizon: `coefficients` of the inputs and a constant, NaN where there is
too little to go by; the `change` from the last value, at least and at most; quantiles of the
`errors`; the `weight` of this model, 0 to 1.
"""


def encoded(state: np.void) -> bytes:
    """One state as a record."""
    return state.tobytes()


def decoded(records: Sequence[bytes]) -> States:
    """States of several entities on one day. Raises `ValueError` for what is none."""
    return np.frombuffer(b"".join(records), STATE).reshape(len(records), -1)
