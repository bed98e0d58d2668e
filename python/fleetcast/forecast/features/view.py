"""What a model is fed, as a contract: the ordered features with units and windows, and their id."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fleetcast.forecast.rows import Floats, Instants

NO_TELEMETRY = "no_telemetry"
INSUFFICIENT_TELEMETRY = "insufficient_telemetry"


@dataclass(frozen=True)
class Feature:
    """One column: what it is called, its unit, the rows it looks at and how old they may be.

    `kind` says how a model scales it: `level` (absolute, in the unit of the target), `scale`
    (a difference of levels, never negative), `change` (a signed difference) or `plain`.
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
        """Content hash: any change of a feature's order, unit or window gives another id."""
        listing = [[f.name, f.unit, f.window, f.kind] for f in self.features]
        text = json.dumps([self.family, listing], separators=(",", ":"))
        return f"{self.family}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def index(self, name: str) -> int:
        """The column of a feature. Raises `ValueError`."""
        return [feature.name for feature in self.features].index(name)


def without_error(errors: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Where there is no code."""
    return np.array([code is None for code in errors], np.bool_)


@dataclass(frozen=True)
class Features:
    """Features of one entity at several issue times; what no row gives is NaN.

    `matrix` is [issue times, features]; `errors` [issue times] holds None or the code of the
    entity error, in which case nothing may be predicted from that line of the matrix.
    """

    issued_ns: Instants
    matrix: Floats
    errors: NDArray[np.object_]
