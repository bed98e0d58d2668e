"""Fits pools' own models, and weighs them by the past answers of both models.

Ridge regression (Hoerl and Kennard, 1970) is fitted once for the day and once for each of the days
before it. The errors come from the days before, so no window has both a fit and an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.features import reduce
from fleetcast.forecast.features.demand import DAY
from fleetcast.forecast.features.windows import STEP_NS
from fleetcast.forecast.scores import pinball
from fleetcast.forecast.series.lags import INPUTS, floor, logarithms, of_issue, of_target
from fleetcast.forecast.series.state import FORTNIGHT_FROM, STATE, WEEK_FROM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants
    from fleetcast.forecast.series.state import States

DAYS = 28
"""Days before a day that its states are fitted to."""
_HELD_DAYS = 14
"""The last of these days, on which errors are taken and both models are weighed."""
_ERROR_DAYS = 7
_APART = 11
"""Windows between issue times at which both models are weighed: all hours and quarters occur."""
_ORIGINS = _HELD_DAYS * DAY // _APART
_SHRINK = 0.01
_CONSTANT_SHRINK = 1e-6
_ROWS_MIN = 4 * DAY
_ERRORS_MIN = DAY
_WEIGHED_MIN = (16, 16, 16, 48)
"""Fewest issue times at each horizon. A day ahead, 13 days of history give 43, and 14 give 52."""
_WEIGHED_ENOUGH = _ORIGINS // 2
"""Issue times from which a share counts whole: 14 days of history, 15 for a day ahead."""
_USUAL = (0.005, 0.995)
"""Changes of a pool beyond these of its quantiles are clipped to them."""
_SHARES = np.linspace(0.0, 1.0, 11)
_SHARED = 0.5
"""Share of the mean over all horizons in the choice for a horizon."""
_COST = 0.05
"""Loss added for a full share of a pool's own model, which must win by more than this share."""
_AT_ONCE = 8
"""States fitted together: some 40 MB."""


@dataclass(frozen=True)
class Histories:
    """Pools before the starts of days, each line by itself.

    `starts` [lines] are in windows since the epoch. `offered` [lines, windows] are the `DAYS`
    before. `answers` [lines, issue times, horizons, quantiles] are the answers at `origins` of the
    model for all.
    """

    starts: NDArray[np.int64]
    offered: Floats
    answers: Floats


def origins(starts: NDArray[np.int64]) -> Instants:
    """Issue times at which both models are weighed for days with these starts: [days, times]."""
    first = -(-(starts - _HELD_DAYS * DAY) // _APART) * _APART
    return (first[:, None] + _APART * np.arange(_ORIGINS)) * STEP_NS


def learned(histories: Histories) -> States:
    """A state for each line: [lines]."""
    states = np.zeros(len(histories.starts), STATE)
    with np.errstate(all="ignore"):  # an idle or far too large pool has no model of its own
        for start in range(0, len(states), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            _learn(histories, some, states[some])
    return states


def _learn(histories: Histories, some: slice, states: States) -> None:
    starts, offered = histories.starts[some], histories.offered[some]
    states["start"] = starts
    states["level"] = reduce.mean(offered)
    level = states["level"].astype(np.float64)
    logs = logarithms(offered, level)
    truth = np.log(offered + floor(level)[:, None])
    states["lowest"], states["highest"] = np.fmin.reduce(logs, 1), np.fmax.reduce(logs, 1)
    for name, first in (("week", WEEK_FROM), ("fortnight", FORTNIGHT_FROM)):
        states[name] = logs[:, first : first + STATE[name].shape[0]]

    def at(lag: int) -> Floats:
        if lag <= 0:
            return np.concatenate([logs[:, -lag:], np.full((len(logs), -lag), np.nan)], axis=1)
        return np.concatenate([np.full((len(logs), lag), np.nan), logs[:, :-lag]], axis=1)

    last, *shared = of_issue(at)
    columns = np.ones((len(starts), INPUTS + 2, DAYS * DAY))
    for column, values in enumerate(shared):
        columns[:, column] = values
    curves = np.full((len(starts), len(DEMAND.horizons_minutes), len(_SHARES)), np.nan)
    weighed = np.zeros(curves.shape[:2])
    for h, horizon in enumerate(DEMAND.horizons_minutes):
        steps = horizon // DEMAND.step_minutes
        for column, values in enumerate(of_target(at, last, steps), len(shared)):
            columns[:, column] = values
        columns[:, -1, : 1 - steps or None] = truth[:, steps - 1 :] - last[:, : 1 - steps or None]
        columns[:, -1, len(last[0]) + 1 - steps :] = np.nan
        middle = _fit(columns, last, states, h)
        errors = last[:, -_HELD_DAYS * DAY :] + columns[:, -1, -_HELD_DAYS * DAY :] - middle
        recent = errors[:, -_ERROR_DAYS * DAY :]
        enough = (~np.isnan(recent)).sum(1) >= _ERRORS_MIN
        quantiles = reduce.quantiles(recent, DEMAND.quantiles)
        states["errors"][:, h] = np.where(enough[:, None], quantiles, np.nan)
        curves[:, h], weighed[:, h] = _losses(histories, some, middle, steps, h, states)
    states["weight"] = _weights(curves) * np.minimum(weighed / _WEIGHED_ENOUGH, 1.0)


def _fit(columns: Floats, last: Floats, states: States, h: int) -> Floats:
    """Sets the coefficients of a horizon; returns its answers on the days held [lines, windows].

    `columns` [lines, columns, windows] are inputs, the constant, and the change from the last
    window.
    """
    lines = len(columns)
    usable = np.logical_and.reduce(np.isfinite(columns), axis=1)
    limits = reduce.quantiles(np.where(usable, columns[:, -1], np.nan), _USUAL)
    rows = np.where(usable[:, None], columns, 0.0)
    np.clip(rows[:, -1], limits[:, :1], limits[:, 1:], out=rows[:, -1])
    rows[:, -1] *= usable
    by_day = np.swapaxes(rows.reshape(lines, -1, DAYS, DAY), 1, 2)
    products = np.cumsum(by_day @ np.swapaxes(by_day, -1, -2), axis=1)
    # For horizons of a day, the truth of the day before is still unknown when a day begins.
    behind = 2 if DEMAND.horizons_minutes[h] > DAY * DEMAND.step_minutes // 2 else 1
    ends = np.append(np.arange(DAYS - _HELD_DAYS, DAYS) - behind, DAYS - 1)
    coefficients = _solved(products[:, ends])
    states["coefficients"][:, h] = coefficients[:, -1]
    states["change"][:, h] = limits
    inputs = columns.reshape(lines, -1, DAYS, DAY)[:, :-1, -_HELD_DAYS:].swapaxes(1, 2)
    said = (coefficients[:, :-1, None] @ inputs)[:, :, 0].reshape(lines, -1)
    middle = last[:, -_HELD_DAYS * DAY :] + np.clip(said, limits[:, :1], limits[:, 1:])
    return np.clip(middle, states["lowest"][:, None], states["highest"][:, None])


def _solved(products: Floats) -> Floats:
    """Coefficients [lines, fits, inputs and constant]; NaN if there are too few rows."""
    normal, right = products[..., :-1, :-1], products[..., :-1, -1]
    count = normal[..., -1, -1]
    rows = np.maximum(count, 1.0)[..., None]
    mean = normal[..., :, -1] / rows
    spread = np.diagonal(normal, axis1=-2, axis2=-1) / rows - mean**2
    spread[..., -1] = 0.0
    shrink = (_SHRINK * np.maximum(spread, 0.0) + _CONSTANT_SHRINK) * rows
    finite = np.isfinite(products).all((-1, -2)) & (count >= _ROWS_MIN)
    matrix = normal + shrink[..., None] * np.eye(INPUTS + 1)
    matrix = np.where(finite[..., None, None], matrix, np.eye(INPUTS + 1))
    solved = np.linalg.solve(matrix, right[..., None])[..., 0]
    return np.where(finite[..., None], solved, np.nan)


def _losses(
    histories: Histories, some: slice, middle: Floats, steps: int, h: int, states: States
) -> tuple[Floats, NDArray[np.int64]]:
    """Losses of mixtures on the days held, by share [lines, shares], relative to the first.

    Also returns the number of issue times that they are taken at [lines].
    """
    answers = histories.answers[some, :, h]
    offered = histories.offered[some]
    line = np.arange(len(answers))[:, None]
    begin = origins(histories.starts[some]) // STEP_NS - histories.starts[some, None]
    known = begin + steps <= 0
    truth = np.where(known, offered[line, np.where(known, begin + steps - 1, -1)], np.nan)
    level = states["level"].astype(np.float64)[:, None, None]
    own = np.exp(middle[line, begin][..., None] + states["errors"][:, None, h]) - floor(level)
    own = np.maximum(own, 0.0)
    used = np.isfinite(truth) & np.isfinite(own).all(-1) & np.isfinite(answers).all(-1)
    mixtures = answers[:, None] + _SHARES[:, None, None] * (own - answers)[:, None]
    losses = pinball(truth[:, None], mixtures, DEMAND.quantiles) @ np.ones(len(DEMAND.quantiles))
    total = reduce.mean(np.where(used[:, None], losses, np.nan))
    curve = total / total[:, :1]
    weighed = used.sum(1)
    enough = (weighed >= _WEIGHED_MIN[h])[:, None] & np.isfinite(curve)
    return np.where(enough, curve, np.nan), weighed


def _weights(curves: Floats) -> Floats:
    """Share of pools' own models in each horizon [lines, horizons], from the mixtures' losses."""
    known = np.logical_and.reduce(np.isfinite(curves), axis=-1)
    usual = reduce.mean(np.swapaxes(np.where(known[..., None], curves, np.nan), 1, 2))[:, None]
    both = np.where(known[..., None], (1 - _SHARED) * curves + _SHARED * usual, 0.0)
    return np.where(known, _SHARES[np.argmin(both + _COST * _SHARES, axis=-1)], 0.0)
