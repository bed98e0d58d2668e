"""Forecasts of entities: features and one run of a model, for the service and for backtests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast import series
from fleetcast.forecast.families import DEMAND, SNR
from fleetcast.forecast.features import features, view, without_error
from fleetcast.forecast.features.demand import DAY, RECENT, windows_before
from fleetcast.forecast.features.windows import STEP_NS, Intervals
from fleetcast.forecast.levels import HOUR, on_levels
from fleetcast.forecast.onnx import Model, shipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features import Features
    from fleetcast.forecast.onnx import Metadata
    from fleetcast.forecast.rows import Floats, Instants, Rows

PREDICTION_UNAVAILABLE = "prediction_unavailable"
_DAYS_AT_ONCE = 64
"""Days whose states are fitted together: some 100 MB for one pool."""


@dataclass(frozen=True)
class Forecasts:
    """Answers: `quantiles` [entities, issue times, horizons, quantiles].

    `errors` [entities, issue times] holds `None` or the code of an entity error. Quantiles are NaN
    if there is a code.
    """

    issued_ns: Instants
    quantiles: Floats
    errors: NDArray[np.object_]


class Forecaster:
    """A family with one model. Load it after a fork, never before."""

    def __init__(self, family: Family, model: Model | None = None) -> None:
        """Loads `model`; `None` means the model of this version. Raises `OperatorError`."""
        self.family = family
        self._model = Model(shipped(family), family, view(family)) if model is None else model

    @property
    def metadata(self) -> Metadata:
        """The metadata in the model file."""
        return self._model.metadata

    @property
    def is_mixed(self) -> bool:
        """Returns true if answers are mixed with the answers of pools' own models.

        A model of raw values is not mixed, because its weight would need a hundred more issue
        times.
        """
        return self.family is DEMAND and self.metadata.context is None

    def _quantiles(self, features: Features, usable: NDArray[np.bool_]) -> Floats:
        if self.metadata.context is not None:
            return self._model.quantiles_of_context(
                features.context[usable][..., -self.metadata.context :]
            )
        quantiles = self._model.quantiles(features.matrix[usable])
        if self.family is not SNR:
            return quantiles
        with np.errstate(over="ignore", invalid="ignore"):  # as for features
            return on_levels(quantiles, features.context[..., -HOUR:][usable])

    def learned(self, entities: Sequence[Rows], starts: NDArray[np.int64]) -> series.States:
        """States of pools on days with these `starts` [entities, days], as `series.starts`.

        Only rows before each start count. A pool's states do not depend on other pools.
        """
        if starts.shape[1] > _DAYS_AT_ONCE:
            parts = np.split(starts, range(_DAYS_AT_ONCE, starts.shape[1], _DAYS_AT_ONCE), axis=1)
            return np.concatenate([self.learned(entities, part) for part in parts], axis=1)
        asked = series.origins(starts.ravel()).reshape(*starts.shape, -1)
        issued, inverse = np.unique(asked, return_inverse=True)
        every = self.predict(features(self.family, entities, issued)).quantiles
        pool = np.arange(len(entities))[:, None, None]
        answers = every[pool, inverse.reshape(asked.shape)]
        before = [
            windows_before(Intervals.of(rows), begun * STEP_NS, series.DAYS * DAY)
            for rows, begun in zip(entities, starts, strict=True)
        ]
        lines = series.Histories(
            starts.ravel(), np.concatenate(before), answers.reshape(-1, *answers.shape[2:])
        )
        return series.learned(lines).reshape(starts.shape)

    def predict(self, features: Features, states: series.States | None = None) -> Forecasts:
        """Forecasts of all entities at all issue times and horizons, in one batch.

        `states` cover all days of the issue times. With them the forecasts are mixed with the
        forecasts of the pools' own models.
        """
        family, codes = self.family, features.errors.copy()
        usable = without_error(codes)
        shape = (*codes.shape, len(family.horizons_minutes), len(family.quantiles))
        answers = np.full(shape, np.nan)
        if usable.any():
            answers[usable] = self._quantiles(features, usable)
            if states is not None:
                recent = features.context[..., -RECENT:]
                answers = series.mixed(answers, recent, features.issued_ns, states)
        lost = usable & ~np.isfinite(answers).all((-2, -1))  # numbers too large to compute with
        answers[lost] = np.nan
        codes[lost] = PREDICTION_UNAVAILABLE
        return Forecasts(features.issued_ns, answers, codes)
