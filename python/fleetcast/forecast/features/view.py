"""Feature view, the contract of a model's input: ordered features, units, windows, and their id."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants

NO_TELEMETRY = "no_telemetry"
INSUFFICIENT_TELEMETRY = "insufficient_telemetry"


@dataclass(frozen=True)
class Feature:
    """A column: its name, its unit, and the rows that it uses, with their greatest age.

    `kind` says how a model scales the column. `level` is absolute, in the unit of the target.
    `scale` is a difference of levels, never negative. `change` is a signed difference. `plain` is
    any other.
    """

    name: str
    unit: str
    window: str
    kind: str


@dataclass(frozen=True)
class FeatureView:
    """The ordered features of a family."""

    family: str
    features: tuple[Feature, ...]

    @property
    def id(self) -> str:
        """Content hash: any change of a feature's order, unit or window gives another id.

        Example: `snr-` and 16 hexadecimal digits.
        """
        listing = [[f.name, f.unit, f.window, f.kind] for f in self.features]
        text = json.dumps([self.family, listing], separators=(",", ":"))
        return f"{self.family}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def index(self, name: str) -> int:
        """The column of a feature. Raises `ValueError` if the view has no such feature."""
        return [feature.name for feature in self.features].index(name)


def without_error(errors: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Mask of the entries without a code."""
    flags = [code is None for code in errors.ravel()]
    return np.array(flags, np.bool_).reshape(errors.shape)


@dataclass(frozen=True)
class Features:
    """Features of entities at the same issue times; NaN if no row gives a feature.

    `matrix` is [entities, issue times, features]. `errors` [entities, issue times] holds `None` or
    the code of the entity error. A line with a code gets no forecast. `context` [entities, issue
    times, steps] holds the means of minutes, or the windows, before the issue time.
    """

    issued_ns: Instants
    matrix: Floats
    errors: NDArray[np.object_]
    context: Floats

    def of(self, entities: Sequence[int]) -> Features:
        """The features of some of the entities, by ascending indexes."""
        if len(entities) == len(self.matrix):
            return self
        chosen = np.asarray(entities, np.intp)
        return Features(
            self.issued_ns, self.matrix[chosen], self.errors[chosen], self.context[chosen]
        )
