"""The two families: the target, its input rows, and the bounds of each family."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.engine import ForecastFamily

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE_NS = 60_000_000_000


@dataclass(frozen=True)
class Family:
    """Constants of a family.

    `step_minutes` is the grid of issue times and targets. `window_minutes` is the length of the
    input window of the entity errors. Features look at most `history_minutes` back from an issue
    time. Models of raw values look at the `context_steps` before it. No target is below `floor`.
    """

    name: str
    measurement: str
    target: str
    fields: tuple[str, ...]
    step_minutes: int
    horizons_minutes: tuple[int, ...]
    quantiles: tuple[float, ...]
    window_minutes: int
    history_minutes: int
    context_steps: int
    floor: float

    @property
    def step_ns(self) -> int:
        """The step in nanoseconds."""
        return self.step_minutes * MINUTE_NS

    @property
    def quantile_names(self) -> tuple[str, ...]:
        """`p10`, `p50` and so on."""
        return tuple(f"p{round(level * 100)}" for level in self.quantiles)

    def issued(self, time_ns: int) -> int:
        """The issue time of a forecast for a request at `time_ns`: rounded down to a whole step.

        Example: with a step of 15 minutes a request at 10:44 has the issue time 10:30.
        """
        return time_ns - time_ns % self.step_ns


SNR = Family(
    name="snr",
    measurement="link",
    target="snr_db",
    fields=("snr_db", "elevation_deg", "azimuth_deg", "slant_range_km"),
    step_minutes=1,
    horizons_minutes=(5, 15, 30, 60),
    quantiles=(0.1, 0.5, 0.9),
    window_minutes=15,
    history_minutes=7 * 1440,
    context_steps=1440,
    floor=-math.inf,
)
DEMAND = Family(
    name="demand",
    measurement="pool_interval",
    target="offered_bytes",
    fields=("offered_bytes",),
    step_minutes=15,
    horizons_minutes=(15, 60, 360, 1440),
    quantiles=(0.1, 0.5, 0.99),
    window_minutes=7 * 1440,
    history_minutes=7 * 1440,
    context_steps=7 * 96,
    floor=0.0,
)
FAMILIES = {family.name: family for family in (SNR, DEMAND)}
ANSWERED: Mapping[str, ForecastFamily] = {
    family.name: ForecastFamily(
        family.name,
        family.horizons_minutes,
        [f"{family.target}_{name}" for name in family.quantile_names],
        family.step_ns if family is DEMAND else None,
    )
    for family in FAMILIES.values()
}
"""The families as answers show them, by name."""
