"""Features of the SNR family: a link's last week before an instant.

The last day is used minute by minute, the six days before hour by hour. A week of minutes would add
little information and cost seven times as much to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import curve, reduce
from fleetcast.forecast.features.minutes import BLOCK, HOUR, averaged
from fleetcast.forecast.features.path import paths
from fleetcast.forecast.features.view import (
    INSUFFICIENT_TELEMETRY,
    NO_TELEMETRY,
    Feature,
    Features,
    FeatureView,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.features.path import Track
    from fleetcast.forecast.rows import Floats, Instants, Rows

    Past: TypeAlias = tuple[Floats, NDArray[np.int64]]

_NEEDED_MINUTES = 10
_NEWEST_MINUTES_MAX = 5
_LAGS = (2, 3, 5, 8, 15, 30, 60)
_DAY = 1440
_DAYS = 7
_STALE_MINUTES_MAX = 15
_SMALL, _LARGE = 360, _DAY
_DAY_LEVELS = (0.1, 0.5, 0.9)
_MOVE_LEVELS = (0.1, 0.9)
_HOURS_OF_MINUTES = 25
"""Whole hours before the hour of the issue time that are used minute by minute."""
_HOURS = SNR.history_minutes // HOUR - _HOURS_OF_MINUTES - 1
"""Earlier hours that are used hour by hour."""
_ERRORS = {h: (_DAY - h) // BLOCK for h in SNR.horizons_minutes}
"""By horizon: the number of the last value's errors in a day."""


def _view() -> FeatureView:
    features = [
        Feature("last", "dB", "newest minute of 5", "level"),
        Feature("age", "min", "newest minute of 5", "plain"),
        *(
            Feature(f"lag_{k}", "dB", f"minute {k} before, at most 15 older", "level")
            for k in _LAGS
        ),
    ]
    for window in ("15m", "60m"):
        features += [
            Feature(f"{what}_{window}", "dB", window, kind)
            for what, kind in (
                ("mean", "level"),
                ("min", "level"),
                ("max", "level"),
                ("spread", "scale"),
                ("move", "scale"),
            )
        ]
    for window in ("6h", "24h"):
        features += [
            Feature(f"mean_{window}", "dB", f"{window} of 5m blocks", "level"),
            Feature(f"spread_{window}", "dB", f"{window} of 5m blocks", "scale"),
            Feature(f"move_{window}", "dB", f"{window} of 5m blocks, within them", "scale"),
        ]
    features += [
        Feature(f"p{round(q * 100)}_24h", "dB", "24h of 5m blocks", "level") for q in _DAY_LEVELS
    ]
    week = f"{_HOURS} hours, up to 25 hours before"
    features += [
        Feature("mean_6d", "dB", week, "level"),
        Feature("spread_6d", "dB", week, "scale"),
        Feature("move_6d", "dB", f"{week}, from one to the next", "scale"),
        *(
            Feature(f"move_p{round(q * 100)}_6d", "dB", f"{week}, from one to the next", "change")
            for q in _MOVE_LEVELS
        ),
        Feature("present_6d", "1", week, "plain"),
    ]
    for h in SNR.horizons_minutes:
        features += _horizon_features(h)
    features += [
        Feature("elevation", "deg", "orbit, or 30m of passes before", "angle"),
        curve.OFFSET,
    ]
    return FeatureView("snr", tuple(features))


def _horizon_features(h: int) -> list[Feature]:
    return [
        *(
            Feature(f"error_{q}_{h}m", "dB", "last value, each 5m of 24h", "change")
            for q in SNR.quantile_names
        ),
        Feature(f"error_6h_{h}m", "dB", "last value, each 5m of 6h", "scale"),
        Feature(f"error_24h_{h}m", "dB", "last value, each 5m of 24h", "scale"),
        Feature(f"yesterday_{h}m", "dB", "change of 5m blocks, 1d before", "change"),
        Feature(f"same_time_{h}m", "dB", "mean change between hours, 2d to 6d", "change"),
        Feature(f"elevation_{h}m", "deg", "orbit, or 30m of passes before", "angle"),
        Feature(f"path_loss_{h}m", "dB", "orbit, or 30m of passes before", "change"),
        *curve.of_horizon(h),
    ]


VIEW = _view()


@dataclass(frozen=True)
class _Blocks:
    """Minutes by blocks [..., blocks, minutes]; the mean and newest value of each [..., blocks]."""

    minutes: Floats
    means: Floats
    newest: Floats

    @classmethod
    def of(cls, minutes: Floats) -> _Blocks:
        blocks = minutes.reshape(*minutes.shape[:-1], -1, BLOCK)
        return cls(blocks, reduce.mean(blocks), reduce.newest(blocks))


def minutes_from_ns(issued_ns: int) -> int:
    """Start of the rows that are used by minute. Rows before it are used by hour."""
    hour = issued_ns // MINUTE_NS // HOUR - _HOURS_OF_MINUTES
    return hour * HOUR * MINUTE_NS


def features(
    entities: Sequence[Rows], issued_ns: Instants, tracks: Sequence[Track | None]
) -> Features:
    """Features of links at `issued_ns`, which are whole minutes. Only rows before each count."""
    now = issued_ns // MINUTE_NS
    first = int(now.min()) // HOUR * HOUR - _HOURS_OF_MINUTES * HOUR
    count = int(now.max()) - first
    minutes = averaged(entities, SNR.target, first, count + -count % BLOCK)
    hour = reduce.windows(minutes, now - first, HOUR + _STALE_MINUTES_MAX)
    columns = _recent(hour)
    blocks = _Blocks.of(minutes)
    columns += _day(blocks, (now - first) // BLOCK)
    hours = _hours(entities, now)
    columns += _week(hours)
    here, there = paths(entities, issued_ns, tracks)
    path_deg = np.concatenate([here.elevation_deg[..., None], there.elevation_deg], axis=-1)
    own, offset = curve.columns(entities, minutes, first, now, path_deg)
    usual = _same_time(hours, now)
    for index, h in enumerate(SNR.horizons_minutes):
        columns += [
            *_errors(blocks, now - first, h),
            _yesterday(blocks, now - first, h),
            usual[..., index],
            there.elevation_deg[..., index],
            20 * np.log10(there.range_km[..., index] / here.range_km),
            *np.moveaxis(own[:, :, index], -1, 0),
        ]
    columns += [here.elevation_deg, offset]
    matrix = np.stack(columns, axis=-1)
    context = reduce.windows(minutes, now - first, SNR.context_steps)
    return Features(issued_ns, matrix, _codes(hour), context)


def observed(rows: Rows, issued_ns: Instants) -> Floats:
    """Mean dB over the minute that ends each horizon later [issue times, horizons]."""
    minutes, index = past(rows, issued_ns)
    return reduce.at(minutes, index[:, None] + np.array(SNR.horizons_minutes) - 1)


def observed_at(entities: Sequence[Rows], issued_ns: int, horizon_minutes: int) -> Floats:
    """Mean dB as in `observed`, of several links at one issue time and horizon [entities]."""
    minute = issued_ns // MINUTE_NS + horizon_minutes - 1
    return averaged(entities, SNR.target, minute, 1)[:, 0]


def same_time(past: Past) -> Floats:
    """The target minute's values on the seven days before [issue times, horizons, days]."""
    minutes, index = past
    target = index[:, None] + np.array(SNR.horizons_minutes) - 1
    return reduce.at(minutes, target[..., None] - _DAY * np.arange(1, _DAYS + 1))


def last_value_errors(past: Past) -> tuple[Floats, list[Floats]]:
    """The last value [issue times], and its errors in the week before, every 5 minutes, in dB.

    Errors are per horizon [issue times, errors], and only with a truth known at the issue time.
    """
    minutes, index = past
    blocks = _Blocks.of(minutes)
    return reduce.newest(reduce.windows(minutes, index, _NEWEST_MINUTES_MAX)), [
        reduce.windows(
            _block_errors(blocks, h),
            (index - h) // BLOCK + 1,
            (SNR.history_minutes - h) // BLOCK,
        )
        for h in SNR.horizons_minutes
    ]


def past(rows: Rows, issued_ns: Instants) -> Past:
    """A week of minutes before issue times and an hour after; and the indexes of issue times."""
    now = issued_ns // MINUTE_NS
    first = int(now.min()) - SNR.history_minutes - BLOCK
    first -= first % BLOCK
    count = int(now.max()) + max(SNR.horizons_minutes) - first
    return averaged([rows], SNR.target, first, count + -count % BLOCK)[0], now - first


def _codes(hour: Floats) -> NDArray[np.object_]:
    present = ~np.isnan(hour[..., -SNR.window_minutes :])
    recent = present[..., -_NEWEST_MINUTES_MAX:].any(-1)
    codes = np.full(hour.shape[:-1], INSUFFICIENT_TELEMETRY, object)
    codes[(present.sum(-1) >= _NEEDED_MINUTES) & recent] = None
    codes[~present.any(-1)] = NO_TELEMETRY
    return codes


def _recent(hour: Floats) -> list[Floats]:
    """Columns of the minutes of the last hour, and some minutes before."""
    latest = hour[..., -_NEWEST_MINUTES_MAX:]
    there = ~np.isnan(latest)
    age = np.where(there.any(-1), 1.0 + there[..., ::-1].argmax(-1), np.nan)
    columns = [reduce.newest(latest), age]
    filled = reduce.filled_forward(hour, _STALE_MINUTES_MAX)
    columns += [filled[..., -lag] for lag in _LAGS]
    for length in (15, HOUR):
        window = hour[..., -length:]
        columns += [
            reduce.mean(window),
            np.fmin.reduce(window, axis=-1),
            np.fmax.reduce(window, axis=-1),
            reduce.spread(window),
            reduce.mean(np.abs(np.diff(window, axis=-1))),
        ]
    return columns


def _day(blocks: _Blocks, ends: NDArray[np.int64]) -> list[Floats]:
    """Columns of the blocks of a day; `ends` counts the finished blocks."""
    means = reduce.windows(blocks.means, ends, _LARGE // BLOCK)
    steps = np.abs(np.diff(blocks.minutes, axis=-1))
    moves = reduce.windows(reduce.mean(steps), ends, _LARGE // BLOCK)
    columns = []
    for length in (_SMALL, _LARGE):
        window = means[..., -length // BLOCK :]
        columns += [reduce.mean(window), reduce.spread(window)]
        columns.append(reduce.mean(moves[..., -length // BLOCK :]))
    quantiles = reduce.quantiles(means, _DAY_LEVELS)
    return columns + [quantiles[..., index] for index in range(len(_DAY_LEVELS))]


def _hours(entities: Sequence[Rows], now: NDArray[np.int64]) -> Floats:
    """Means of the hours that come before the minutes [entities, issue times, hours]."""
    ends = now // HOUR - _HOURS_OF_MINUTES
    first = int(ends.min()) - _HOURS
    count = int(ends.max()) - first
    return reduce.windows(averaged(entities, SNR.target, first, count, HOUR), ends - first, _HOURS)


def _week(hours: Floats) -> list[Floats]:
    moves = np.diff(hours, axis=-1)
    quantiles = reduce.quantiles(moves, _MOVE_LEVELS)
    return [
        reduce.mean(hours),
        reduce.spread(hours),
        reduce.mean(np.abs(moves)),
        *(quantiles[..., index] for index in range(len(_MOVE_LEVELS))),
        (~np.isnan(hours)).mean(-1),
    ]


def _block_errors(blocks: _Blocks, horizon: int) -> Floats:
    """Errors of the last value, issued at the start of each block [..., blocks].

    Horizons are whole blocks, so the truth is the last minute of a block.
    """
    errors = np.full(blocks.means.shape, np.nan)
    ahead = horizon // BLOCK
    truth = blocks.minutes[..., ahead:, -1]
    errors[..., 1 : 1 - ahead or None] = truth - blocks.newest[..., :-ahead]
    return errors


def _errors(blocks: _Blocks, index: NDArray[np.int64], horizon: int) -> list[Floats]:
    """Quantiles and sizes of the last value's errors whose truth was known at the issue time."""
    known = (index - horizon) // BLOCK + 1
    errors = reduce.windows(_block_errors(blocks, horizon), known, _ERRORS[horizon])
    sizes = [reduce.mean(np.abs(errors[..., -length // BLOCK :])) for length in (_SMALL, _LARGE)]
    quantiles = reduce.quantiles(errors, SNR.quantiles)
    return [*(quantiles[..., index] for index in range(len(SNR.quantiles))), *sizes]


def _yesterday(blocks: _Blocks, index: NDArray[np.int64], horizon: int) -> Floats:
    """Change at the same time on the day before."""
    then = reduce.at(blocks.means, (index - 1 - _DAY) // BLOCK)
    return reduce.at(blocks.means, (index + horizon - 1 - _DAY) // BLOCK) - then


def _same_time(hours: Floats, now: NDArray[np.int64]) -> Floats:
    """Mean change to each horizon at the same time on earlier days, between the middles of hours.

    [entities, issue times, horizons].
    """
    past = _DAY * np.arange(2, _DAYS)
    start = (now // HOUR - _HOURS_OF_MINUTES - _HOURS) * HOUR
    ahead = np.array([0, *SNR.horizons_minutes])
    levels = _between(hours, (now - start)[:, None, None] - past + ahead[:, None])
    return reduce.mean(levels[..., 1:, :] - levels[..., :1, :])


def _between(hours: Floats, minutes: NDArray[np.int64]) -> Floats:
    """Levels at minutes [issue times, ahead, days] after the first hour's start.

    Linear between hours: [entities, issue times, ahead, days].
    """
    index, rest = np.divmod(minutes - HOUR // 2, HOUR)
    indexes = index.reshape(1, len(index), -1)
    shape = (*hours.shape[:-1], *index.shape[1:])
    below, above = (np.take_along_axis(hours, indexes + k, -1).reshape(shape) for k in (0, 1))
    between: Floats = below + (above - below) * (rest / HOUR)
    return between
