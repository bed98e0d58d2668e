"""Links that go down: the warnings of forecasts, compared with the last value.

A link is down in minutes below its level. The level is the median over the seven days before the
day, less a threshold. An outage begins with such a minute after `WITHIN` minutes without. At an
issue time after `WITHIN` minutes up, a link gets a warning or not. A warning holds for `WITHIN`
minutes, and is false if the link is up in all of them. Example: with a median of 12 dB and a
threshold of 5 dB, a minute at 6.9 dB is down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.errors import OperatorError
from fleetcast.forecast.alarms import adapted
from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import reduce
from fleetcast.forecast.features.minutes import averaged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants, Rows

WITHIN = 30
"""Minutes ahead in which a warning must come before an outage."""
FALSE_ALARMS = 1.0
"""False alarms a day of a link that is up.

The first level of alarm is the lowest that raises no more, and later levels keep near this number.
"""
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
    """A link at the issue times at which it was up, in minutes since the epoch.

    `signs` [issue times, signs] decide about alarms. `margin` [issue times] is the distance of the
    last value above the level, in dB. `down` [issue times] is true if an outage came. `onsets` are
    the minutes at which outages began that lay ahead of an issue time.
    """

    issued: NDArray[np.int64]
    signs: Floats
    margin: Floats
    down: NDArray[np.bool_]
    onsets: NDArray[np.int64]


@dataclass(frozen=True)
class Warnings:
    """The outages of a period, and the warnings of one forecast for them.

    `lead_minutes` is the median over the outages with a warning.
    """

    outages: int
    missed: int
    false_alarms: float | None
    """False alarms for each day of a link that was up."""
    lead_minutes: float | None


@dataclass(frozen=True)
class Share:
    """A share, and its 5th and 95th percentile when days are drawn again with replacement."""

    share: float
    low: float
    high: float


@dataclass(frozen=True)
class OutageReport:
    """Warnings by forecaster, and the share by which the model missed fewer outages.

    The share is relative to the last value's missed outages.
    """

    within_minutes: int
    forecasts: dict[str, Warnings]
    fewer_missed: Share | None


def watch(rows: Rows, issued_ns: Instants, quantiles: Floats, threshold_db: float) -> Watch:
    """Watches a link at ascending issue times; `quantiles` are [times, horizons, quantiles]."""
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
    """The median of the seven days before each day [days]; NaN with under half a day of data."""
    days = -(-len(minutes) // _DAY)
    weeks = [minutes[max(day * _DAY - _WEEK, 0) : day * _DAY] for day in range(days)]
    return np.array(
        [
            np.nanmedian(week) if np.isfinite(week).sum() >= _NEEDED_MINUTES else np.nan
            for week in weeks
        ]
    )


def _signs(quantiles: Floats, level: Floats, last: Floats) -> Floats:
    """The level's distance from the middle, in lower bands, and from p10 and the last value."""
    columns = []
    for horizon in _HORIZONS:
        low, middle, _ = quantiles[:, SNR.horizons_minutes.index(horizon)].T
        columns += [(level - middle) / np.maximum(middle - low, _FINEST_DB), level - low]
    signs: Floats = np.arcsinh(np.stack([*columns, level - last], axis=1))
    return signs


def report(watches: Sequence[Watch], step_minutes: float, until_ns: int) -> OutageReport:
    """Missed outages, false alarms and lead times of forecasts and of the last value.

    Issue times before `until_ns` calibrate the weights of signs and the first levels of alarm.
    Later issue times are judged, and the levels follow the outcomes that are known. Raises
    `OperatorError` if the earlier issue times do not suffice.
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
        level = _alarm_level(watches, scores, before, step_minutes)
        expected = FALSE_ALARMS * step_minutes / _DAY
        alarms = adapted(
            [one.issued for one in watches],
            scores,
            [one.down for one in watches],
            (until, level),
            within_minutes=WITHIN,
            expected=expected,
        )
        parts = [~part for part in before]
        each = zip(watches, scores, parts, alarms, strict=True)
        counts = [_Count.of(*one) for one in each]
        judged[who] = counts
        lines[who] = _line(counts, parts, step_minutes)
    fewer = _fewer(judged["model"], judged["last_value"])
    return OutageReport(WITHIN, lines, fewer)


@dataclass(frozen=True)
class _Count:
    """A link under one level of alarm. `leads` are in minutes, NaN for missed `onsets`."""

    onsets: NDArray[np.int64]
    leads: Floats
    false: int

    @classmethod
    def of(
        cls, one: Watch, scores: Floats, part: NDArray[np.bool_], alarm: float | Floats
    ) -> _Count:
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

    Raises `OperatorError` if all issue times, or no issue times, had an outage ahead.
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
    """The lowest level that gives no more than the permitted false alarms."""
    known = np.concatenate([s[part] for s, part in zip(scores, before, strict=True)])
    allowed = FALSE_ALARMS * len(known) * step_minutes / _DAY
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
    """Share by which `ours` missed fewer outages; `None` if `theirs` missed none.

    Example: 3 missed outages instead of 4 are 0.25.
    """
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
