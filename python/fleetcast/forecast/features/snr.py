"""Features of the SNR family: a link's last week as of an instant, only rows before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import reduce
from fleetcast.forecast.features.minutes import BLOCK, Minutes
from fleetcast.forecast.features.path import paths
from fleetcast.forecast.features.view import (
    INSUFFICIENT_TELEMETRY,
    NO_TELEMETRY,
    Feature,
    Features,
    FeatureView,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.features.path import Track
    from fleetcast.forecast.rows import Floats, Instants, Rows

_NEEDED_MINUTES = 10
_NEWEST_MINUTES_MAX = 5
_LAGS = (2, 3, 5, 8, 15, 30, 60)
_HOUR = 60
_DAY = 1440
_DAYS = SNR.history_minutes // _DAY
_STALE_MINUTES_MAX = 15
_SMALL, _LARGE = 360, _DAY
_DAY_LEVELS = (0.1, 0.5, 0.9)


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
            Feature(f"move_{window}", "dB", f"{window} of 5m blocks", "scale"),
        ]
    features += [
        Feature(f"p{round(q * 100)}_24h", "dB", "24h of 5m blocks", "level") for q in _DAY_LEVELS
    ]
    features += [
        Feature("mean_7d", "dB", "7d of 5m blocks", "level"),
        Feature("present_7d", "1", "7d of 5m blocks", "plain"),
    ]
    for h in SNR.horizons_minutes:
        features += [
            *(
                Feature(f"error_{q}_{h}m", "dB", "last value, each 5m of 7d", "change")
                for q in SNR.quantile_names
            ),
            Feature(f"error_6h_{h}m", "dB", "last value, each 5m of 6h", "scale"),
            Feature(f"error_24h_{h}m", "dB", "last value, each 5m of 24h", "scale"),
            Feature(f"same_time_{h}m", "dB", "mean change of 5m blocks on 7d", "change"),
            Feature(f"elevation_{h}m", "deg", "orbit, or 30m of passes before", "angle"),
            Feature(f"path_loss_{h}m", "dB", "orbit, or 30m of passes before", "change"),
        ]
    features.append(Feature("elevation", "deg", "orbit, or 30m of passes before", "angle"))
    return FeatureView("snr", tuple(features))


VIEW = _view()


def features(rows: Rows, issued_ns: Instants, track: Track | None = None) -> Features:
    """Features of one link at `issued_ns`, whole minutes. Only rows before each are looked at."""
    minutes = Minutes.around(rows, issued_ns)
    now = minutes.place(issued_ns)
    hour = reduce.windows(minutes.snr, now, _HOUR)
    columns = [*_recent(minutes, now, hour), *_long(minutes, now)]
    here, there = paths(minutes, issued_ns, track)
    for index, h in enumerate(SNR.horizons_minutes):
        columns += [
            *_errors(minutes, now, h),
            _same_time(minutes, now, h),
            there.elevation_deg[:, index],
            20 * np.log10(there.range_km[:, index] / here.range_km),
        ]
    columns.append(here.elevation_deg)
    return Features(issued_ns, np.stack(columns, axis=1), _codes(hour))


def observed(rows: Rows, issued_ns: Instants) -> Floats:
    """Mean dB over the minute that ends each horizon later [issue times, horizons]."""
    minutes = Minutes.around(rows, issued_ns)
    now = minutes.place(issued_ns)
    return reduce.at(minutes.snr, now[:, None] + np.array(SNR.horizons_minutes) - 1)


def same_time(rows: Rows, issued_ns: Instants) -> Floats:
    """The target minute's values on the seven days before [issue times, horizons, days]."""
    minutes = Minutes.around(rows, issued_ns)
    target = minutes.place(issued_ns)[:, None] + np.array(SNR.horizons_minutes) - 1
    return reduce.at(minutes.snr, target[..., None] - _DAY * np.arange(1, _DAYS + 1))


def _codes(hour: Floats) -> NDArray[np.object_]:
    present = ~np.isnan(hour[:, -SNR.window_minutes :])
    fresh = present[:, -_NEWEST_MINUTES_MAX:].any(1)
    codes = np.full(len(hour), INSUFFICIENT_TELEMETRY, object)
    codes[(present.sum(1) >= _NEEDED_MINUTES) & fresh] = None
    codes[~present.any(1)] = NO_TELEMETRY
    return codes


def _recent(minutes: Minutes, now: NDArray[np.int64], hour: Floats) -> list[Floats]:
    newest = hour[:, -_NEWEST_MINUTES_MAX:]
    steps = np.arange(newest.shape[1])
    place = np.where(np.isnan(newest), -1, steps).max(1)
    last = np.take_along_axis(newest, np.maximum(place, 0)[:, None], 1)[:, 0]
    age = np.where(place < 0, np.nan, newest.shape[1] - place)
    filled = reduce.filled_forward(minutes.snr, _STALE_MINUTES_MAX)
    columns = [last, age, *(reduce.at(filled, now - lag) for lag in _LAGS)]
    for length in (15, _HOUR):
        window = hour[:, -length:]
        empty = np.isnan(window).all(1)
        columns += [
            reduce.mean(window),
            np.where(empty, np.nan, np.where(np.isnan(window), np.inf, window).min(1)),
            np.where(empty, np.nan, np.where(np.isnan(window), -np.inf, window).max(1)),
            reduce.spread(window),
            reduce.mean(np.abs(np.diff(window, axis=1))),
        ]
    return columns


def _long(minutes: Minutes, now: NDArray[np.int64]) -> list[Floats]:
    ends = now // BLOCK  # blocks that are over
    blocks, moves = minutes.blocks(), minutes.moves()
    week = reduce.windows(blocks, ends, SNR.history_minutes // BLOCK)
    columns = []
    for length in (_SMALL, _LARGE):
        window = week[:, -length // BLOCK :]
        move = reduce.mean(reduce.windows(moves, ends, length // BLOCK))
        columns += [reduce.mean(window), reduce.spread(window), move]
    columns += list(reduce.quantiles(week[:, -_DAY // BLOCK :], _DAY_LEVELS).T)
    return [*columns, reduce.mean(week), (~np.isnan(week)).mean(1)]


def _errors(minutes: Minutes, now: NDArray[np.int64], horizon: int) -> list[Floats]:
    """Quantiles and sizes of the last value's errors whose truth was known at the issue time."""
    count = (SNR.history_minutes - horizon) // BLOCK
    known = (now - horizon) // BLOCK + 1
    errors = reduce.windows(minutes.last_value_errors(horizon), known, count)
    sizes = [reduce.mean(np.abs(errors[:, -length // BLOCK :])) for length in (_SMALL, _LARGE)]
    return [*reduce.quantiles(errors, SNR.quantiles).T, *sizes]


def _same_time(minutes: Minutes, now: NDArray[np.int64], horizon: int) -> Floats:
    """How the same time of day went on, on the seven days before."""
    blocks = minutes.blocks()
    past = np.arange(1, _DAYS + 1) * _DAY
    then = reduce.at(blocks, (now[:, None] - 1 - past) // BLOCK)
    later = reduce.at(blocks, (now[:, None] + horizon - 1 - past) // BLOCK)
    return reduce.mean(later - then)
