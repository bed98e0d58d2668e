"""Links that go down: what forecasts warn of, beside the last value.

A link is down in minutes below its level: its median over the seven days before the day, less a
threshold. An outage begins with such a minute after `WITHIN` minutes without. At an issue time
where it was up for as long a link is warned of or not; a warning holds for `WITHIN` minutes, and is
false where the link is up in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.errors import OperatorError
from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import reduce
from fleetcast.forecast.features.minutes import averaged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants, Rows

WITHIN = 30
"""Minutes ahead in which an outage is to be warned of."""
FALSE_ALARMS_MAX = 1.0
"""For each day of a link that is up: the level of alarm is the lowest that keeps to it."""
_DAY = 1440
_WEEK = 7 * _DAY
_NEEDED_MINUTES = _DAY // 2
_NEWEST_MINUTES_MAX = 5
_HORIZONS = tuple(h for h in SNR.horizons_minutes if h <= WITHIN)
_FINEST_DB = 0.02
_FAR = 5.0
_SHRINK = 10.0
_LEVELS = 60
_ROUNDS = 60
_LEAST = 1e-4
_DRAWS = 1000


@dataclass(frozen=True)
class Watch:
    """One link at the issue times at which it was up, in minutes since the epoch.

    `signs` [issue times, signs] are what an alarm goes by, `margin` [issue times] by how many dB
    the last value is above the level, `down` [issue times] where an outage came. `onsets` are the
    minutes in which outages began that any issue time saw ahead.
    """

    issued: NDArray[np.int64]
    signs: Floats
    margin: Floats
    down: NDArray[np.bool_]
    onsets: NDArray[np.int64]


@dataclass(frozen=True)
class Warnings:
    """Outages that were to be warned of, and how one forecast did: medians of those warned of."""

    outages: int
    missed: int
    false_alarms: float | None
    """For each day of a link that was up."""
    lead_minutes: float | None


@dataclass(frozen=True)
class Share:
    """A share, and its 5th and 95th percentile when days are drawn anew."""

    share: float
    low: float
    high: float


@dataclass(frozen=True)
class OutageReport:
    """Warnings by who forecast, and by how much fewer the model missed than the last value did."""

    within_minutes: int
    forecasts: dict[str, Warnings]
    fewer_missed: Share | None


def watch(rows: Rows, issued_ns: Instants, quantiles: Floats, threshold_db: float) -> Watch:
    """A link at ascending issue times, with the quantiles [issue times, horizons, quantiles]."""
    issued = issued_ns // MINUTE_NS
    first = int(issued[0]) // _DAY * _DAY - _WEEK
    count = int(issued[-1]) + WITHIN - first
    minutes = averaged([rows], SNR.target, first, count)[0]
    levels = _levels(minutes) - threshold_db
    low = minutes < np.repeat(levels, _DAY)[:count]
    total = np.concatenate([[0], np.cumsum(low)])
    now = issued - first
    level = levels[now // _DAY]
    last = reduce.newest(reduce.windows(minutes, now, _NEWEST_MINUTES_MAX))
    up = total[now] == total[np.maximum(now - WITHIN, 0)]
    up &= np.isfinite(last - level) & np.isfinite(quantiles).all((1, 2))
    begins = np.flatnonzero(low)
    begins = begins[total[begins] == total[np.maximum(begins - WITHIN, 0)]]
    seen = np.searchsorted(now[up], begins + 1) > np.searchsorted(now[up], begins + 1 - WITHIN)
    return Watch(
        issued[up],
        _signs(quantiles[up], level[up], last[up]),
        (last - level)[up],
        (total[now + WITHIN] > total[now])[up],
        begins[seen] + first,
    )


def _levels(minutes: Floats) -> Floats:
    """The median of the seven days before each day [days]; NaN where half a day is not there."""
    days = -(-len(minutes) // _DAY)
    weeks = [minutes[max(day * _DAY - _WEEK, 0) : day * _DAY] for day in range(days)]
    return np.array(
        [
            np.nanmedian(week) if np.isfinite(week).sum() >= _NEEDED_MINUTES else np.nan
            for week in weeks
        ]
    )


def _signs(quantiles: Floats, level: Floats, last: Floats) -> Floats:
    """How far the level is from the middle, in lower bands, and from p10 and the last value."""
    columns = []
    for horizon in _HORIZONS:
        low, middle, _ = quantiles[:, SNR.horizons_minutes.index(horizon)].T
        columns += [(level - middle) / np.maximum(middle - low, _FINEST_DB), level - low]
    signs: Floats = np.arcsinh(np.stack([*columns, level - last], axis=1))
    return signs


def report(watches: Sequence[Watch], step_minutes: float, until_ns: int) -> OutageReport:
    """Missed outages, false alarms and lead times of forecasts and of the last value.

    Issue times before `until_ns` calibrate: how signs weigh, and the levels of alarm. The others
    are judged. Raises `OperatorError` where there is nothing to calibrate by.
    """
    until = until_ns // MINUTE_NS
    before = [one.issued < until for one in watches]
    risk = _calibrated(
        np.concatenate([one.signs[part] for one, part in zip(watches, before, strict=True)]),
        np.concatenate([one.down[part] for one, part in zip(watches, before, strict=True)]),
    )
    lines, judged = {}, {}
    for who in ("model", "last_value"):
        scores = [risk(one.signs) if who == "model" else -one.margin for one in watches]
        alarm = _alarm_level(watches, scores, before, step_minutes)
        parts = [~part for part in before]
        counts = [_Count.of(*each, alarm) for each in zip(watches, scores, parts, strict=True)]
        judged[who] = counts
        lines[who] = _line(counts, parts, step_minutes)
    fewer = _fewer(judged["model"], judged["last_value"])
    return OutageReport(WITHIN, lines, fewer)


@dataclass(frozen=True)
class _Count:
    """One link under one level of alarm: `leads` are NaN for missed `onsets`, in minutes."""

    onsets: NDArray[np.int64]
    leads: Floats
    false: int

    @classmethod
    def of(cls, one: Watch, scores: Floats, part: NDArray[np.bool_], alarm: float) -> _Count:
        raised = np.flatnonzero(part & (scores >= alarm))
        at = one.issued[raised]
        own = np.flatnonzero(part)
        later = np.searchsorted(one.issued[own], one.onsets + 1)
        seen = later > np.searchsorted(one.issued[own], one.onsets + 1 - WITHIN)
        onsets = one.onsets[seen]
        first = np.searchsorted(at, onsets + 1 - WITHIN)
        warned = first < np.searchsorted(at, onsets + 1)
        leads = np.full(len(onsets), np.nan)
        leads[warned] = onsets[warned] - at[first[warned]]
        false, held = 0, -WITHIN
        for minute, down in zip(at.tolist(), one.down[raised].tolist(), strict=True):
            if minute >= held + WITHIN:
                held = minute
                false += not down
        return cls(onsets, leads, false)


def _calibrated(signs: Floats, down: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """The odds of an outage, as a logarithm, by signs: logistic regression, slightly shrunk.

    Raises `OperatorError` where there was no outage, or nothing else.
    """
    if down.all() or not down.any():
        message = "no outage to calibrate by: a later --calibrate-until, or a lower --threshold"
        raise OperatorError(message)
    centre, spread = signs.mean(0), signs.std(0) + 1e-9

    def inputs(signs: Floats) -> Floats:
        standard = np.clip((signs - centre) / spread, -_FAR, _FAR)
        return np.concatenate([standard, np.ones((len(signs), 1))], axis=1)

    x, shrink = inputs(signs), _SHRINK * np.eye(signs.shape[1] + 1)
    shrink[-1, -1] = 0.0

    def loss(weights: Floats) -> float:
        odds = x @ weights
        own = weights @ shrink @ weights / 2
        return float(np.logaddexp(0, odds).sum() - odds[down].sum() + own)

    weights = np.zeros(x.shape[1])
    weights[-1] = np.log(down.mean() / (1 - down.mean()))
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        curve = (x * (chance * (1 - chance))[:, None]).T @ x + shrink
        step = np.linalg.solve(curve, x.T @ (down - chance) - shrink @ weights)
        now, part = loss(weights), 1.0
        while loss(weights + part * step) > now and part > _LEAST:
            part /= 2
        weights = weights + part * step
        if now - loss(weights) < 1e-6 * abs(now):
            break
    return lambda signs: inputs(signs) @ weights


def _alarm_level(
    watches: Sequence[Watch],
    scores: Sequence[Floats],
    before: Sequence[NDArray[np.bool_]],
    step_minutes: float,
) -> float:
    """The lowest level that gives no more false alarms than may be."""
    known = np.concatenate([s[part] for s, part in zip(scores, before, strict=True)])
    allowed = FALSE_ALARMS_MAX * len(known) * step_minutes / _DAY
    found = float(np.max(known))
    for level in np.quantile(known, 1 - np.geomspace(1e-4, 0.5, _LEVELS)).tolist():
        each = zip(watches, scores, before, strict=True)
        if sum(_Count.of(*one, level).false for one in each) > allowed:
            break
        found = level
    return found


def _line(
    counts: Sequence[_Count], parts: Sequence[NDArray[np.bool_]], step_minutes: float
) -> Warnings:
    leads = np.concatenate([count.leads for count in counts])
    days = sum(int(part.sum()) for part in parts) * step_minutes / _DAY
    warned = leads[~np.isnan(leads)]
    return Warnings(
        outages=len(leads),
        missed=len(leads) - len(warned),
        false_alarms=sum(count.false for count in counts) / days if days else None,
        lead_minutes=float(np.median(warned)) if len(warned) else None,
    )


def _fewer(ours: Sequence[_Count], theirs: Sequence[_Count]) -> Share | None:
    """Share by which fewer are missed; `None` where they miss none."""
    days = [np.concatenate([count.onsets for count in counts]) // _DAY for counts in (ours, theirs)]
    lost = [np.isnan(np.concatenate([count.leads for count in c])) for c in (ours, theirs)]
    known = np.unique(np.concatenate(days))
    missed = np.array(
        [
            [(gone & (day == one)).sum() for one in known]
            for day, gone in zip(days, lost, strict=True)
        ]
    )
    if not len(known) or not missed[1].sum():
        return None
    dice = np.random.default_rng(0)
    drawn = missed[:, dice.integers(0, len(known), (_DRAWS, len(known)))].sum(-1)
    drawn = drawn[:, drawn[1] > 0]
    low, high = np.quantile(1 - drawn[0] / drawn[1], (0.05, 0.95)).tolist()
    return Share(float(1 - missed[0].sum() / missed[1].sum()), low, high)
