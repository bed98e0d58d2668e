"""Forecasts at past instants next to the values measured then, for the console.

The forecasts are computed again by the primary release in force, from rows before each instant
only, as in a backtest. They are not looked up, kept or counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast import series
from fleetcast.forecast.backtest import backtest, score_rows
from fleetcast.forecast.families import MINUTE_NS
from fleetcast.forecast.features import features, observed
from fleetcast.forecast.features.windows import STEP_NS
from fleetcast.forecast.risk import below
from fleetcast.forecast.rows import NO_ROWS
from fleetcast.forecast.series import DAYS as HISTORY_DAYS
from fleetcast.forecast.serving.inputs import features_of, history_of, rows_before

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.model import Forecaster
    from fleetcast.forecast.rows import Floats, Instants
    from fleetcast.forecast.series import States
    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.rollouts import Release
    from fleetcast.forecast.serving.store import PredictionStore

ORIGINS_MAX = 720
_DAY_NS = 1440 * MINUTE_NS


@dataclass(frozen=True, kw_only=True)
class HindsightBand:
    """A row for each target instant; the last targets lie in the future."""

    model_version: str
    times_ns: list[int]
    quantiles: list[list[float | None]]
    """A column for each quantile of the family; `None` without a forecast."""
    observed: list[float | None]
    """The target as the family defines it; `None` if it was not measured."""
    fan: list[list[float | None]]
    """The forecast of the newest instant: a row for each horizon, a column for each quantile."""
    error: str | None
    """Code of the entity error at the newest instant, if there is one."""


@dataclass(frozen=True, kw_only=True)
class EntityOutlook:
    """The forecast of one entity from now on."""

    family: Family
    quantiles: list[list[float]]
    """A row for each horizon that has a forecast, a column for each quantile."""

    def probability_below(self, threshold: float) -> float | None:
        """The highest probability, of all horizons, that a value is below `threshold`.

        `None` without a forecast.
        """
        if not self.quantiles:
            return None
        return float(below(self.family, np.array(self.quantiles), threshold).max())


@dataclass(frozen=True, kw_only=True)
class HindsightScores:
    """How good the release in force was, next to the simple baselines."""

    model_version: str
    origins: int
    """Instants at which each entity was forecast."""
    scores: list[dict[str, object]]
    """Rows of `score_rows`."""


class Hindsight:
    """Looks back over one entity at a time. Safe to share between threads."""

    def __init__(self, store: PredictionStore, releases: Releases) -> None:
        self._store = store
        self._releases = releases

    def outlook(
        self, plane: Plane, family: Family, entity_ids: list[str]
    ) -> list[EntityOutlook] | None:
        """The forecasts of entities from now on, in their order; `None` without a release.

        Raises as `band`.
        """
        found = self._forecaster(family)
        if found is None:
            return None
        if not entity_ids:
            return []
        _, forecaster = found
        now_ns = family.issued(self._releases.clock.now_ns())
        inputs = features_of(plane, family, entity_ids, now_ns)
        states = _states(forecaster, plane, entity_ids, inputs.issued_ns)
        quantiles = np.sort(forecaster.predict(inputs, states).quantiles[:, 0])  # never crossing
        return [
            EntityOutlook(family=family, quantiles=rows[np.isfinite(rows).all(-1)].tolist())
            for rows in quantiles
        ]

    def scores(
        self, plane: Plane, family: Family, entity_ids: list[str], span_minutes: int, every: int
    ) -> HindsightScores | None:
        """Backtest of entities over the last `span_minutes`, with an origin `every` minutes.

        All rows of the entities are in memory at once. `None` without a release. Raises as `band`.
        Example: a span of 60 minutes and an origin every 15 minutes are 5 origins.
        """
        found = self._forecaster(family)
        if found is None:
            return None
        release, forecaster = found
        last_ns = family.issued(self._releases.clock.now_ns())
        back = np.arange(span_minutes // every, -1, -1, dtype=np.int64)
        asked_ns = last_ns - back * every * MINUTE_NS
        first_ns = int(asked_ns[0])
        if forecaster.is_mixed:  # models of pools are fitted to more than what features look at
            first_ns -= (HISTORY_DAYS + 1) * _DAY_NS - family.history_minutes * MINUTE_NS
        entities = rows_before(plane, family, entity_ids, last_ns, first_ns)
        scores = backtest(forecaster, entities, asked_ns, lambda _: None).scores if entities else {}
        return HindsightScores(
            model_version=release.model_version,
            origins=len(asked_ns),
            scores=score_rows(family, scores),
        )

    def _forecaster(self, family: Family) -> tuple[Release, Forecaster] | None:
        with self._store.read() as records:
            release = self._releases.current(records, family.name).primary
        return None if release is None else (release, self._releases.forecaster(family, release))

    def band(
        self, plane: Plane, family: Family, entity_id: str, horizon_minutes: int, span_minutes: int
    ) -> HindsightBand | None:
        """The last `span_minutes`, and the horizon from now on; `None` without a release.

        Raises `ValueError` for more than `ORIGINS_MAX` instants, `OperatorError` for a release that
        does not load, `StoreError`, `PredictionStoreUnavailable`. Example: a span of 60 minutes and
        a horizon of 30, by steps of 15 minutes, are 7 instants.
        """
        count = (span_minutes + horizon_minutes) // family.step_minutes + 1
        if count > ORIGINS_MAX:
            message = f"{count} instants are more than {ORIGINS_MAX}"
            raise ValueError(message)
        found = self._forecaster(family)
        if found is None:
            return None
        release, forecaster = found
        last_ns = family.issued(self._releases.clock.now_ns())
        issued_ns = last_ns - family.step_ns * np.arange(count - 1, -1, -1, dtype=np.int64)
        first_ns = int(issued_ns[0])
        rows = rows_before(plane, family, [entity_id], last_ns, first_ns).get(entity_id, NO_ROWS)
        states = _states(forecaster, plane, [entity_id], issued_ns)
        forecast = forecaster.predict(features(family, [rows], issued_ns), states)
        at = family.horizons_minutes.index(horizon_minutes)
        quantiles = np.sort(forecast.quantiles[0], axis=-1)  # never crossing
        levels = quantiles[:, at]
        return HindsightBand(
            model_version=release.model_version,
            times_ns=(issued_ns + horizon_minutes * MINUTE_NS).tolist(),
            quantiles=[_listed(levels[:, index]) for index in range(len(family.quantiles))],
            observed=_listed(observed(family, rows, issued_ns)[:, at]),
            fan=[_listed(row) for row in quantiles[-1]],
            error=forecast.errors[0, -1],
        )


def _states(
    forecaster: Forecaster, plane: Plane, entity_ids: Sequence[str], issued_ns: Instants
) -> States | None:
    """States of pools on each day, fitted as the service fits them [pools, days].

    Several pools have one issue time. `None` for a model that is not mixed.
    """
    if not forecaster.is_mixed:
        return None
    days = np.stack([series.starts(entity_id, issued_ns) for entity_id in entity_ids])
    fitted = [
        np.concatenate(
            [
                forecaster.learned(rows, begun[some, None])
                for some, rows in history_of(
                    plane, forecaster.family, entity_ids, (begun * STEP_NS).tolist()
                )
            ]
        )
        for begun in days.T
    ]
    return np.concatenate(fitted, axis=1)


def _listed(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
