"""Backtest: the answers that the service would have given at each origin, from past rows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fleetcast.errors import OperatorError
from fleetcast.forecast import series
from fleetcast.forecast.baselines import Baselines, baselines
from fleetcast.forecast.features import features, observed, without_error
from fleetcast.forecast.model import Forecasts
from fleetcast.forecast.outages import watch
from fleetcast.forecast.scores import Score

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features.path import Track
    from fleetcast.forecast.model import Forecaster
    from fleetcast.forecast.outages import Watch
    from fleetcast.forecast.rows import Floats, Instants, Rows

ORIGINS_MAX = 10_000_000
_CHUNK = 1024
"""Issue times computed together. The bound limits memory to some 100 MB a thread."""


@dataclass(frozen=True)
class Result:
    """`answers`: a row per entity, origin and horizon; scores by forecaster; watched links."""

    answers: pl.DataFrame
    scores: dict[str, Score]
    watches: list[Watch]


def origins(start_ns: int, end_ns: int, step_ns: int) -> Instants:
    """`start`, `start + step` and so on up to and including `end`. Raises `OperatorError`.

    Example: start 0, end 10 and step 4 give 0, 4 and 8.
    """
    if step_ns <= 0:
        message = "--every must be longer than nothing"
        raise OperatorError(message)
    if end_ns < start_ns:
        message = "--end must not be before --start"
        raise OperatorError(message)
    count = (end_ns - start_ns) // step_ns + 1
    if count > ORIGINS_MAX:
        message = f"{count} origins are more than {ORIGINS_MAX}: choose a longer --every"
        raise OperatorError(message)
    return start_ns + step_ns * np.arange(count, dtype=np.int64)


def backtest(
    forecaster: Forecaster,
    entities: Mapping[str, Rows],
    asked_ns: Instants,
    advance: Callable[[int], None],
    tracks: Callable[[str, Rows], Track | None] | None = None,
    threshold_db: float | None = None,
) -> Result:
    """Answers of all entities at all origins; `advance` is called for each finished entity.

    `tracks` returns the orbit at the other end of an entity's link, if there is an orbit. With
    `threshold_db`, links are watched for outages.
    """
    family = forecaster.family
    issued = asked_ns - asked_ns % family.step_ns
    distinct, inverse = np.unique(issued, return_inverse=True)
    horizons = len(family.horizons_minutes)
    scores = {
        who: Score(family.quantiles, horizons) for who in ("model", "last_value", "same_time")
    }

    def one(item: tuple[str, Rows]) -> tuple[Forecasts, Floats, Baselines]:
        entity_id, rows = item
        track = None if tracks is None else tracks(entity_id, rows)
        return _entity(forecaster, item, distinct, track)

    frames, watches = [], []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for entity_id, (forecast, truth, others) in zip(
            entities, threads.map(one, entities.items()), strict=True
        ):
            answered = without_error(forecast.errors[0])[inverse]
            scored = np.where(answered[:, None], truth[inverse], np.nan)
            scores["model"].add(scored, forecast.quantiles[0, inverse])
            scores["last_value"].add(scored, others.last_value[inverse])
            scores["same_time"].add(scored, others.same_time[inverse])
            frames.append(_answers(family, entity_id, forecast, truth, inverse))
            if threshold_db is not None:
                rows = entities[entity_id]
                watches.append(watch(rows, distinct, forecast.quantiles[0], threshold_db))
            advance(1)
    return Result(pl.concat(frames), scores, watches)


def score_rows(family: Family, scores: Mapping[str, Score]) -> list[dict[str, object]]:
    """A row for each horizon and forecaster: the count, both losses, and coverage by quantile.

    Example: `{"horizon_minutes": 5, "forecast": "model", "count": 24, …}`.
    """
    rows: list[dict[str, object]] = []
    for index, horizon in enumerate(family.horizons_minutes):
        for who, score in scores.items():
            coverage = score.coverage(index)
            rows.append(
                {
                    "horizon_minutes": horizon,
                    "forecast": who,
                    "count": score.count(index),
                    "mean_pinball": score.mean_pinball(index),
                    "weighted_quantile_loss": score.weighted_quantile_loss(index),
                    "coverage": dict.fromkeys(family.quantile_names)
                    if coverage is None
                    else dict(zip(family.quantile_names, coverage, strict=True)),
                }
            )
    return rows


def _entity(
    forecaster: Forecaster, item: tuple[str, Rows], issued_ns: Instants, track: Track | None
) -> tuple[Forecasts, Floats, Baselines]:
    family, (entity_id, rows) = forecaster.family, item
    forecasts, truths, others = [], [], []
    states = None
    if forecaster.is_mixed:
        states = forecaster.learned([rows], series.starts(entity_id, issued_ns)[None])
    for start in range(0, len(issued_ns), _CHUNK):
        chunk = issued_ns[start : start + _CHUNK]
        forecasts.append(forecaster.predict(features(family, [rows], chunk, [track]), states))
        truths.append(observed(family, rows, chunk))
        others.append(baselines(family, rows, chunk))
    return (
        Forecasts(
            issued_ns,
            np.concatenate([forecast.quantiles for forecast in forecasts], axis=1),
            np.concatenate([forecast.errors for forecast in forecasts], axis=1),
        ),
        np.concatenate(truths),
        Baselines(
            np.concatenate([other.last_value for other in others]),
            np.concatenate([other.same_time for other in others]),
        ),
    )


def _answers(
    family: Family, entity_id: str, forecast: Forecasts, truth: Floats, inverse: NDArray[np.intp]
) -> pl.DataFrame:
    horizons = len(family.horizons_minutes)
    quantiles = forecast.quantiles[0, inverse]
    count = len(inverse) * horizons
    columns = {
        "entity_id": pl.repeat(entity_id, count, eager=True),
        "issued_at": pl.Series(np.repeat(forecast.issued_ns[inverse], horizons)).cast(
            pl.Datetime("ns", "UTC")
        ),
        "horizon_minutes": pl.Series(np.tile(family.horizons_minutes, len(inverse))),
        **{
            name: pl.Series(quantiles[..., index].ravel(), nan_to_null=True)
            for index, name in enumerate(family.quantile_names)
        },
        "observed": pl.Series(truth[inverse].ravel(), nan_to_null=True),
        "error": pl.Series(
            np.repeat(forecast.errors[0, inverse], horizons).tolist(), dtype=pl.String
        ),
    }
    return pl.DataFrame(columns)
