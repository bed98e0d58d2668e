"""The few functions that scaling needs, on arrays [rows, columns] of doubles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.rows import Floats

Value = TypeVar("Value")


class Functions(Protocol[Value]):
    """Functions that scaling needs, on arrays and on a graph's expressions."""

    def take(self, x: Value, columns: Sequence[int]) -> Value:
        """Returns the columns `columns`."""

    def log(self, x: Value) -> Value:
        """Natural logarithm."""

    def exp(self, x: Value) -> Value:
        """The exponential function."""

    def sqrt(self, x: Value) -> Value:
        """Square root."""

    def sine(self, degrees: Value) -> Value:
        """Sine of an angle in degrees."""

    def squashed(self, x: Value) -> Value:
        """asinh: close to x near 0, and logarithmic for large x."""

    def known(self, x: Value) -> Value:
        """Returns x, with 0 in place of NaN."""

    def missing(self, x: Value) -> Value:
        """1 if NaN, else 0."""

    def nothing(self, x: Value) -> Value:
        """1 if 0, else 0."""

    def joined(self, parts: Sequence[Value]) -> Value:
        """Joins columns."""


class ArrayFunctions:
    """`Functions` on arrays."""

    def take(self, x: Floats, columns: Sequence[int]) -> Floats:
        return x[:, list(columns)]

    def log(self, x: Floats) -> Floats:
        return np.log(x)

    def exp(self, x: Floats) -> Floats:
        return np.exp(x)

    def sqrt(self, x: Floats) -> Floats:
        return np.sqrt(x)

    def sine(self, degrees: Floats) -> Floats:
        return np.sin(degrees * float(np.pi / 180))

    def squashed(self, x: Floats) -> Floats:
        size = np.abs(x)
        squashed: Floats = np.sign(x) * np.log(size + np.sqrt(size * size + 1.0))
        return squashed

    def known(self, x: Floats) -> Floats:
        return np.where(np.isnan(x), 0.0, x)

    def missing(self, x: Floats) -> Floats:
        return np.isnan(x).astype(float)

    def nothing(self, x: Floats) -> Floats:
        zeros: Floats = (x == 0).astype(float)
        return zeros

    def joined(self, parts: Sequence[Floats]) -> Floats:
        return np.concatenate(list(parts), axis=1)
