"""Forecasts of entities: features and one run of a model. Service and backtest both come here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.features import view, without_error
from fleetcast.forecast.onnx import Model, shipped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features import Features
    from fleetcast.forecast.onnx import Metadata
    from fleetcast.forecast.rows import Floats, Instants

PREDICTION_UNAVAILABLE = "prediction_unavailable"


@dataclass(frozen=True)
class Forecasts:
    """Answers: `quantiles` [entities, issue times, horizons, quantiles].

    They are NaN where `errors` [entities, issue times] holds the code of an entity error instead
    of None.
    """

    issued_ns: Instants
    quantiles: Floats
    errors: NDArray[np.object_]


class Forecaster:
    """One family with one model. Load it after a fork, never before."""

    def __init__(self, family: Family, model: Model | None = None) -> None:
        """`model` of None is the one that came with this version. Raises `OperatorError`."""
        self.family = family
        self._model = Model(shipped(family), family, view(family)) if model is None else model

    @property
    def metadata(self) -> Metadata:
        """The metadata in the model file."""
        return self._model.metadata

    def predict(self, features: Features) -> Forecasts:
        """Forecasts of all entities at all issue times and horizons, in one batch."""
        family, codes = self.family, features.errors.copy()
        usable = without_error(codes)
        shape = (*codes.shape, len(family.horizons_minutes), len(family.quantiles))
        answers = np.full(shape, np.nan)
        if usable.any():
            answers[usable] = self._model.quantiles(features.matrix[usable])
        lost = usable & ~np.isfinite(answers).all((-2, -1))  # numbers too large to reckon with
        answers[lost] = np.nan
        codes[lost] = PREDICTION_UNAVAILABLE
        return Forecasts(features.issued_ns, answers, codes)
