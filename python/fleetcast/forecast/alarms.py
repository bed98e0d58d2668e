"""The level of alarm, which follows the false alarms that came.

A level that is right in quiet weeks raises too many false alarms in rain. So the share of issue
times with an alarm falls if false alarms were more than expected, and grows if they were fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats

_LOG_SHARES = np.log(np.geomspace(1e-12, 0.9, 800))
"""Shares of issue times with an alarm, as logarithms. Levels between them are linear."""
_TAIL = np.log(1e-3)
"""Levels for smaller shares are on an exponential tail, because few or no scores reached them."""


def adapted(
    issued: Sequence[NDArray[np.int64]],
    scores: Sequence[Floats],
    down: Sequence[NDArray[np.bool_]],
    start: tuple[int, float],
    *,
    within_minutes: int,
    expected: float,
) -> list[Floats]:
    """Levels of alarm at the issue times of each link.

    `issued` has the issue times of each link, in minutes. `down` is true if an outage came. `start`
    has the minute from which the level follows the outcomes, and the level until then. All
    links have one level. An outcome counts when it is known, `within_minutes` later. `expected` is
    the number of false alarms for each issue time and link. If false alarms exceed it by one for
    each link in a day, the share of alarms falls by the factor e.
    """
    counts = [len(one) for one in issued]
    link = np.repeat(np.arange(len(counts)), counts)
    minutes, score, came = np.concatenate(issued), np.concatenate(scores), np.concatenate(down)
    until, level = start
    known = _levels(score[minutes < until])
    share = float(np.interp(-level, -known, _LOG_SHARES))
    levels = np.full(len(minutes), level)
    order = np.argsort(minutes, kind="stable")
    order = order[minutes[order] >= until]
    held = np.full(len(counts), np.iinfo(np.int64).min // 2)
    outcomes: list[tuple[int, float]] = []
    seen = 0
    for some in np.split(order, np.flatnonzero(np.diff(minutes[order])) + 1):
        if not len(some):
            break
        now = int(minutes[some[0]])
        while seen < len(outcomes) and outcomes[seen][0] + within_minutes <= now:
            share += expected - outcomes[seen][1]
            seen += 1
        share = float(np.clip(share, _LOG_SHARES[0], _LOG_SHARES[-1]))
        levels[some] = np.interp(share, _LOG_SHARES, known)
        new = (score[some] >= levels[some]) & (now - held[link[some]] >= within_minutes)
        held[link[some[new]]] = now
        outcomes.append((now, float((new & ~came[some]).mean())))
    return np.split(levels, np.cumsum(counts)[:-1])


def _levels(scores: Floats) -> Floats:
    """The levels that scores reach in these shares of issue times."""
    first, second = np.quantile(scores, 1 - np.exp([_TAIL, _TAIL + 1]))
    tail = first + (first - second) * (_TAIL - _LOG_SHARES)
    seen = np.quantile(scores, 1 - np.exp(_LOG_SHARES))
    levels: Floats = np.where(_LOG_SHARES < _TAIL, tail, seen)
    return levels
