"""Inputs of a pool's own model: logarithms of its windows, less the newest window's.

So a model whose weights are zero predicts the last value, which is the limit of shrinking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fleetcast.forecast.features.demand import DAY, WEEK
from fleetcast.forecast.features.reduce import mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.forecast.rows import Floats

    At: TypeAlias = Callable[[int], Floats]
    """The window `lag` windows before the window that begins at each issue time; NaN if unknown."""

FORTNIGHT = 2 * WEEK
INPUTS = 15
"""Number of inputs of each horizon."""
_GAP_MAX = 4


def logarithms(offered: Floats, level: Floats) -> Floats:
    """Logarithms of windows [..., windows] of pools with these means, short gaps filled."""
    steps = np.arange(offered.shape[-1])
    newest = np.maximum.accumulate(np.where(np.isnan(offered), -1, steps), axis=-1)
    filled = np.take_along_axis(offered, np.maximum(newest, 0), -1)
    filled = np.where((newest >= 0) & (steps - newest <= _GAP_MAX), filled, np.nan)
    return np.log(filled + floor(level)[..., None])


def floor(level: Floats) -> Floats:
    """Bytes that are added before a logarithm is taken, so that an idle pool has a logarithm."""
    return 0.01 * level


def of_issue(at: At) -> list[Floats]:
    """The newest window, and then inputs that are the same for all horizons."""
    last = at(1)
    yesterday = at(1 + DAY)
    week = _or(at(1 + WEEK), yesterday)
    return [
        last,
        at(2) - last,
        at(3) - last,
        sum((at(k) for k in range(5, 9)), at(4)) / 5 - last,
        yesterday - last,
        (at(2 + DAY) + at(3 + DAY)) / 2 - last,
        week - last,
        _or(at(1 + FORTNIGHT), week) - last,
        mean(np.stack([at(k) for k in range(1, DAY + 1, 12)], axis=-1)) - last,
    ]


def of_target(at: At, last: Floats, steps: int) -> list[Floats]:
    """Inputs at the time of day, and of the week, of the window that ends `steps` later."""

    def before(lag: int) -> Floats:
        return at(lag - (steps - 1))

    day = before(DAY)
    days = _or(before(2 * DAY), day)
    week = _or(before(WEEK), day)
    after = DAY - 1 if steps < DAY else DAY + 1
    return [
        day - last,
        days - last,
        (before(DAY + 1) + before(after)) / 2 - last,
        week - last,
        (_or(before(WEEK - 1), day) + _or(before(WEEK + 1), day)) / 2 - last,
        _or(before(WEEK + DAY), days) - last,
        _or(before(FORTNIGHT), week) - last,
    ]


def _or(values: Floats, others: Floats) -> Floats:
    return np.where(np.isnan(values), others, values)
