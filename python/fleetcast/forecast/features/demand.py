"""Features of the demand family: a pool's last seven days before an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND, MINUTE_NS
from fleetcast.forecast.features import reduce
from fleetcast.forecast.features.view import (
    INSUFFICIENT_TELEMETRY,
    NO_TELEMETRY,
    Feature,
    Features,
    FeatureView,
    without_error,
)
from fleetcast.forecast.features.windows import STEP_NS, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants, Rows

DAY = 1440 // DEMAND.step_minutes
DAYS = 7
WEEK = DAYS * DAY
NEEDED = 666
_LAGS = (1, 2, 3, 4, 6, 8, 12, 24, 48, 96)
_MEANS = (4, 8, 16, 48, 96)
_SPREADS = (16, 96, WEEK)
_LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_ERROR_LEVELS = (0.1, 0.5, 0.9, 0.99)
_NEIGHBOURS = 2
RECENT = 2 * DAY + 4
"""Windows that models of one pool take unchanged."""
_QUARTERS = 60 // DEMAND.step_minutes
"""Windows of an hour. Much of the work of servers begins on the hour."""
_AT_ONCE = 256
"""Weeks computed together. With more weeks, memory is returned and allocated again and again."""
_FLOOR = 0.01
"""Logarithms are of bytes + this share of the seven-day mean, so that an idle pool has one."""


def _view() -> FeatureView:
    step = f"{DEMAND.step_minutes}m windows"
    features = [
        Feature("mean_7d", "B", f"7d of {step}", "level"),
        Feature("age", step, "newest window present", "plain"),
        *(Feature(f"lag_{k}", "B", f"{k} {step} before, filled forward", "level") for k in _LAGS),
        *(Feature(f"mean_{k}", "B", f"{k} {step}", "level") for k in _MEANS),
    ]
    for k in _SPREADS:
        features += [
            Feature(f"spread_{k}", "log", f"{k} {step}", "plain"),
            Feature(f"move_{k}", "log", f"{k} {step}", "plain"),
        ]
    features += [Feature(f"p{round(q * 100)}_7d", "B", f"7d of {step}", "level") for q in _LEVELS]
    features += [
        Feature("same_time_mean_now", "B", "newest window on 6d", "level"),
        Feature("same_time_median_now", "B", "newest window on 6d", "level"),
    ]
    features += [
        Feature(f"quarter_{k}", "log", f"each 4th of {step} of 7d, {k} after the newest", "plain")
        for k in range(_QUARTERS)
    ]
    for h in DEMAND.horizons_minutes:
        features += [
            Feature(f"yesterday_{h}m", "B", "same time, 1d before", "level"),
            Feature(f"week_ago_{h}m", "B", "same time, 7d before", "level"),
            *(
                Feature(f"same_time_{of}_{h}m", "B", "same time on 7d", "level")
                for of in ("min", "median", "max")
            ),
            Feature(f"same_time_around_{h}m", "B", "same time +-2 windows on 7d", "level"),
            Feature(f"same_time_spread_{h}m", "log", "same time on 7d", "plain"),
            *(
                Feature(f"error_p{round(q * 100)}_{h}m", "log", "last value, 7d", "plain")
                for q in _ERROR_LEVELS
            ),
        ]
    return FeatureView("demand", tuple(features))


VIEW = _view()


def features(entities: Iterable[Rows], issued_ns: Instants) -> Features:
    """Features of pools at `issued_ns`, which are window boundaries. Only rows before each count.

    The rows of a pool are no longer needed when the next pool's rows are requested.
    """
    weeks_of, silent_of = zip(*(_week(rows, issued_ns) for rows in entities), strict=True)
    weeks = np.stack(weeks_of)
    codes = np.where(np.stack(silent_of), NO_TELEMETRY, INSUFFICIENT_TELEMETRY).astype(object)
    codes[(~np.isnan(weeks)).sum(-1) >= NEEDED] = None
    matrix = np.full((*codes.shape, len(VIEW.features)), np.nan)
    complete = np.argwhere(without_error(codes))
    for start in range(0, len(complete), _AT_ONCE):
        some = tuple(complete[start : start + _AT_ONCE].T)
        matrix[some] = _matrix(weeks[some])
    return Features(issued_ns, matrix, codes, weeks)


def _week(rows: Rows, issued_ns: Instants) -> tuple[Floats, NDArray[np.bool_]]:
    """The windows of a pool before each issue time, and whether they have no interval."""
    if not len(rows.times_ns):  # a tenth of the time that windows of nothing take
        return np.full((len(issued_ns), WEEK), np.nan), np.ones(len(issued_ns), np.bool_)
    intervals = Intervals.of(rows)
    times_ns = intervals.times_ns
    starts, ends = np.searchsorted(times_ns, [issued_ns - WEEK * STEP_NS, issued_ns])
    return windows_before(intervals, issued_ns), starts == ends


def observed(rows: Rows, issued_ns: Instants) -> Floats:
    """Bytes in the window that ends each horizon later [issue times, horizons].

    Only whole windows count, by the spacing known at their end.
    """
    intervals = Intervals.of(rows)
    ends_ns, inverse = np.unique(
        issued_ns[:, None] + np.array(DEMAND.horizons_minutes) * MINUTE_NS, return_inverse=True
    )
    truth = np.full(len(ends_ns), np.nan)
    for spacing, chosen in intervals.spacings(ends_ns):
        targets = ends_ns[chosen] // STEP_NS - 1
        first = int(targets.min())
        windows = intervals.windows(spacing, first, int(targets.max()) - first + 1)
        whole = np.where(windows.whole, windows.offered, np.nan)
        truth[chosen] = whole[targets - first]
    return truth[inverse].reshape(len(issued_ns), -1)


def past(rows: Rows, issued_ns: Instants) -> Floats:
    """The week of windows before each issue time, which both baselines use."""
    return windows_before(Intervals.of(rows), issued_ns)


def last_value_errors(week: Floats) -> tuple[Floats, list[Floats]]:
    """The newest window's bytes [issue times], and its errors in the week before, in bytes.

    Errors are per horizon [issue times, errors]: the error of each window as a forecast.
    """
    filled, _ = _filled(week)
    steps = [horizon // DEMAND.step_minutes for horizon in DEMAND.horizons_minutes]
    return filled[:, -1], [week[:, k:] - filled[:, :-k] for k in steps]


def same_time(week: Floats) -> Floats:
    """The target window's bytes on the seven days before [issue times, horizons, days]."""
    return np.stack([week[:, _same_time_indexes(h)] for h in DEMAND.horizons_minutes], axis=1)


def windows_before(intervals: Intervals, issued_ns: Instants, count: int = WEEK) -> Floats:
    """The last `count` windows before each issue time [issue times, windows], by default a week."""
    result = np.full((len(issued_ns), count), np.nan)
    for spacing, chosen in intervals.spacings(issued_ns):
        issues = issued_ns[chosen] // STEP_NS
        first = int(issues.min()) - count
        windows = intervals.windows(spacing, first, int(issues.max()) - first)
        if len(windows.offered) == count:  # one issue time, as in the service
            result[chosen] = windows.offered
        else:
            result[chosen] = reduce.windows(windows.offered, issues - first, count)
    return result


def _matrix(week: Floats) -> Floats:
    """`week` is [issue times, windows]."""
    mean = reduce.mean(week)
    floor = _FLOOR * mean[:, None] + np.finfo(np.float64).tiny
    logs = np.log(week + floor)
    filled, age = _filled(week)
    columns = [mean, age, *(filled[:, -k] for k in _LAGS)]
    columns += [reduce.mean(week[:, -k:]) for k in _MEANS]
    moves = np.abs(np.diff(logs, axis=1))
    for k in _SPREADS:
        columns += [reduce.spread(logs[:, -k:]), reduce.mean(moves[:, 1 - k :])]
    columns += list(reduce.quantiles(week, _LEVELS).T)
    today = week[:, WEEK - 1 - DAY * np.arange(1, DAYS)]
    columns += [reduce.mean(today), reduce.quantiles(today, (0.5,))[:, 0]]
    filled_logs = np.log(filled + floor)
    quarters = np.stack([reduce.mean(logs[:, k::_QUARTERS]) for k in range(_QUARTERS)], axis=1)
    columns += list((quarters - reduce.mean(quarters)[:, None]).T)
    for h in DEMAND.horizons_minutes:
        columns += _same_time(week, logs, h)
        steps = h // DEMAND.step_minutes
        errors = logs[:, steps:] - filled_logs[:, :-steps]
        columns += list(reduce.quantiles(errors, _ERROR_LEVELS).T)
    return np.stack(columns, axis=1)


def _same_time_indexes(horizon: int) -> NDArray[np.int64]:
    """Indexes in a week of windows of the target's time of day, the day before first."""
    target = WEEK + horizon // DEMAND.step_minutes - 1
    return target - DAY * np.arange(1, DAYS + 1)


def _same_time(week: Floats, logs: Floats, horizon: int) -> list[Floats]:
    indexes = _same_time_indexes(horizon)
    values = week[:, indexes]
    near = indexes[:, None] + np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1)
    near = near[(near >= 0) & (near < WEEK)]
    return [
        values[:, 0],
        values[:, -1],
        *reduce.quantiles(values, (0.0, 0.5, 1.0)).T,
        reduce.mean(week[:, near]),
        reduce.spread(logs[:, indexes]),
    ]


def _filled(week: Floats) -> tuple[Floats, Floats]:
    """Each window, or the newest present window before it; and the age of the newest window."""
    if not np.isnan(week).any():
        return week, np.ones(len(week))
    steps = np.arange(week.shape[1])
    newest = np.maximum.accumulate(np.where(np.isnan(week), -1, steps), axis=1)
    filled = np.take_along_axis(week, np.maximum(newest, 0), 1)
    filled[newest < 0] = np.nan
    return filled, (week.shape[1] - newest[:, -1]).astype(float)
