"""Features of the SNR family: a link's last week before an instant.

The last day is used minute by minute, the six days before hour by hour. The engine computes the
features in `rust/forecast`, in the order of `VIEW`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fleetcast.engine import link_features, stored_link_features
from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import reduce
from fleetcast.forecast.features.minutes import BLOCK, averaged
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

    from fleetcast.engine import Plane
    from fleetcast.forecast.features.path import Track
    from fleetcast.forecast.rows import Floats, Instants, Rows

    Past: TypeAlias = tuple[Floats, NDArray[np.int64]]

_NEWEST_MINUTES_MAX = 5
_LAGS = (2, 3, 5, 8, 15, 30, 60)
_DAY = 1440
_DAYS = 7
_DAY_LEVELS = (0.1, 0.5, 0.9)
_MOVE_LEVELS = (0.1, 0.9)
_HOURS = SNR.history_minutes // 60 - 26
"""Hours that are used hour by hour."""
_CURVE = "hours 3 to 25 before, minutes at like elevation"
_CODES = np.array([None, INSUFFICIENT_TELEMETRY, NO_TELEMETRY], object)
"""Codes of entity errors by the numbers of the engine."""


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
        Feature("curve_offset", "dB", f"newest 15m less {_CURVE}", "change"),
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
        Feature(f"curve_{h}m", "dB", _CURVE, "level"),
        Feature(f"curve_moved_{h}m", "dB", f"{_CURVE}, and offset", "level"),
        Feature(f"curve_change_{h}m", "dB", _CURVE, "change"),
        Feature(f"curve_spread_{h}m", "dB", _CURVE, "scale"),
        Feature(f"curve_support_{h}m", "1", _CURVE, "plain"),
    ]


VIEW = _view()


def features(
    entities: Sequence[Rows], issued_ns: Instants, tracks: Sequence[Track | None]
) -> Features:
    """Features of links at `issued_ns`, which are whole minutes. Only rows before each count."""
    links = [(rows.times_ns, [rows.fields.get(field) for field in SNR.fields]) for rows in entities]
    ahead = np.array([0, *SNR.horizons_minutes])
    paths = [None if track is None else track.path(issued_ns, ahead) for track in tracks]
    orbits = [None if path is None else (path.elevation_deg, path.range_km) for path in paths]
    return _features(link_features(links, issued_ns, orbits), issued_ns)


def stored(plane: Plane, entity_ids: Sequence[str], issued_ns: int) -> Features:
    """Features of distinct links that a plane stores, at one issue time. Raises `StoreError`."""
    found = stored_link_features(plane, entity_ids, issued_ns)
    return _features(found, np.array([issued_ns]))


def _features(found: tuple[bytes, bytes, bytes], issued_ns: Instants) -> Features:
    columns, telemetry, context = found
    codes = _CODES[np.frombuffer(telemetry, np.uint8)].reshape(-1, len(issued_ns))
    return Features(
        issued_ns,
        np.frombuffer(columns, "<f8").reshape(*codes.shape, len(VIEW.features)),
        codes,
        np.frombuffer(context, "<f8").reshape(*codes.shape, SNR.context_steps),
    )


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
    blocks = minutes.reshape(-1, BLOCK)
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


def _block_errors(blocks: Floats, horizon: int) -> Floats:
    """Errors of the last value, issued at the start of each block of minutes [blocks].

    Horizons are whole blocks, so the truth is the last minute of a block.
    """
    errors = np.full(len(blocks), np.nan)
    ahead = horizon // BLOCK
    errors[1 : 1 - ahead or None] = blocks[ahead:, -1] - reduce.newest(blocks[:-ahead])
    return errors
