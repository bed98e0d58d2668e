"""Answers of pools' own models, and their mixture with the answers of the model for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.features.demand import RECENT
from fleetcast.forecast.features.windows import STEP_NS
from fleetcast.forecast.series.lags import floor, logarithms, of_issue, of_target
from fleetcast.forecast.series.state import FORTNIGHT_FROM, WEEK_FROM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants
    from fleetcast.forecast.series.state import States

_ROOM = 1.0
"""No quantile is more than e times as large as any past window."""


def mixed(answers: Floats, recent: Floats, issued_ns: Instants, states: States) -> Floats:
    """Quantiles of both models as one [entities, issue times, horizons, quantiles].

    `answers` are the answers of the model for all. `recent` are the last windows before each issue
    time [entities, issue times, `RECENT`]. If a pool's own model has no answer, `answers` stay
    unchanged. Example: with a weight of 0.25, answers of 100 and 200 bytes become 125.
    """
    windows = issued_ns // STEP_NS
    begun = states["start"][:, None] <= windows[:, None]  # [entities, issue times, days]
    state = np.take_along_axis(states, begun.sum(-1) - 1, axis=1)
    steps = windows - state["start"]
    with np.errstate(all="ignore"):  # numbers too large to compute with are no answer
        own = _answers(recent, steps, state)
        weight = np.where(np.isfinite(own).all(-1), state["weight"], 0.0)[..., None]
        return np.where(weight > 0, answers + weight * (own - answers), answers)


def _answers(recent: Floats, steps: NDArray[np.int64], state: States) -> Floats:
    level = state["level"].astype(np.float64)
    logs = logarithms(recent, level)
    kept = {name: state[name].astype(np.float64) for name in ("week", "fortnight")}

    def at(lag: int) -> Floats:
        if lag <= RECENT:
            return logs[..., -lag]
        name, first = ("fortnight", FORTNIGHT_FROM) if lag > -WEEK_FROM else ("week", WEEK_FROM)
        index = np.broadcast_to(steps - lag - first, logs.shape[:-1])[..., None]
        return np.take_along_axis(kept[name], index, -1)[..., 0]

    last, *shared = of_issue(at)
    answers = []
    for h, horizon in enumerate(DEMAND.horizons_minutes):
        columns = [*shared, *of_target(at, last, horizon // DEMAND.step_minutes)]
        inputs = np.stack([*columns, np.ones_like(last)], axis=-1)
        change = (inputs * state["coefficients"][..., h, :]).sum(-1)
        change = np.clip(change, *np.moveaxis(state["change"][..., h, :], -1, 0))
        middle = np.clip(last + change, state["lowest"], state["highest"])
        answers.append(middle[..., None] + state["errors"][..., h, :])
    highest = state["highest"][..., None, None] + _ROOM
    bytes_ = np.exp(np.minimum(np.stack(answers, axis=-2), highest))
    quantiles: Floats = np.maximum(bytes_ - floor(level)[..., None, None], 0.0)
    return quantiles
