"""The few functions that scaling needs, on arrays [rows, columns] of doubles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.rows import Floats


class ArrayFunctions:
    """Functions that scaling needs. `GraphFunctions` has them on expressions of a graph."""

    def take(self, x: Floats, columns: Sequence[int]) -> Floats:
        """Returns the columns `columns`."""
        return x[:, list(columns)]

    def log(self, x: Floats) -> Floats:
        """Natural logarithm."""
        return np.log(x)

    def exp(self, x: Floats) -> Floats:
        """The exponential function."""
        return np.exp(x)

    def sqrt(self, x: Floats) -> Floats:
        """Square root."""
        return np.sqrt(x)

    def sine(self, degrees: Floats) -> Floats:
        """Sine of an angle in degrees."""
        return np.sin(degrees * float(np.pi / 180))

    def squashed(self, x: Floats) -> Floats:
        """asinh: close to x near 0, and logarithmic for large x."""
        size = np.abs(x)
        squashed: Floats = np.sign(x) * np.log(size + np.sqrt(size * size + 1.0))
        return squashed

    def known(self, x: Floats) -> Floats:
        """Returns x, with 0 in place of NaN."""
        return np.where(np.isnan(x), 0.0, x)

    def missing(self, x: Floats) -> Floats:
        """1 if NaN, else 0."""
        return np.isnan(x).astype(float)

    def nothing(self, x: Floats) -> Floats:
        """1 if 0, else 0."""
        zeros: Floats = (x == 0).astype(float)
        return zeros

    def joined(self, parts: Sequence[Floats]) -> Floats:
        """Joins columns."""
        return np.concatenate(list(parts), axis=1)
