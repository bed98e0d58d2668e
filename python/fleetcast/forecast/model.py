"""Forecasts of entities: features and one run of a model. Service and backtest both come here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.features import features, view, without_error
from fleetcast.forecast.onnx import shipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features import Features
    from fleetcast.forecast.features.path import Track
    from fleetcast.forecast.onnx import Metadata, Model
    from fleetcast.forecast.rows import Floats, Instants, Rows

PREDICTION_UNAVAILABLE = "prediction_unavailable"


@dataclass(frozen=True)
class Forecast:
    """Answers for one entity: `quantiles` [issue times, horizons, quantiles].

    They are NaN where `errors` [issue times] holds the code of an entity error instead of None.
    """

    issued_ns: Instants
    quantiles: Floats
    errors: NDArray[np.object_]


class Forecaster:
    """One family with one model. Load it after a fork, never before."""

    def __init__(self, family: Family, model: Model | None = None) -> None:
        """`model` of None is the one that came with this version. Raises `OperatorError`."""
        self.family = family
        self._model = shipped(family, view(family)) if model is None else model

    @property
    def metadata(self) -> Metadata:
        """What the model says of itself."""
        return self._model.metadata

    def features(self, rows: Rows, issued_ns: Instants, track: Track | None = None) -> Features:
        """Features of one entity at issue times, whole steps; only rows before each count."""
        return features(self.family, rows, issued_ns, track)

    def predict(self, entities: Sequence[Features]) -> list[Forecast]:
        """Forecasts of all entities, at all their issue times and horizons, in one batch."""
        if not entities:
            return []
        matrix = np.concatenate([entity.matrix for entity in entities])
        codes = np.concatenate([entity.errors for entity in entities])
        usable = without_error(codes)
        shape = (len(matrix), len(self.family.horizons_minutes), len(self.family.quantiles))
        answers = np.full(shape, np.nan)
        if usable.any():
            answers[usable] = self._model.quantiles(matrix[usable])
        lost = usable & ~np.isfinite(answers).all((1, 2))  # numbers too large to reckon with
        answers[lost] = np.nan
        codes[lost] = PREDICTION_UNAVAILABLE
        ends = np.cumsum([len(entity.issued_ns) for entity in entities])[:-1]
        return [
            Forecast(entity.issued_ns, quantiles, errors)
            for entity, quantiles, errors in zip(
                entities, np.split(answers, ends), np.split(codes, ends), strict=True
            )
        ]
