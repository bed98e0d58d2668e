"""A small network and its training, in plain numpy, so that a seed decides everything.

The network has two hidden layers, a skip past them, heads per horizon, and quantiles that cannot
cross. The middle quantile is one output; the others lie a softplus below and above it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.rows import Floats

Singles: TypeAlias = NDArray[np.float32]

INPUT_LIMIT = 6.0
"""Standard deviations beyond which an input is clipped."""
EXPONENT_LIMIT = 8.0
"""exp of this is some 3,000 times the mean: no demand is predicted above."""
HEADS = 3
STORED = np.float16
"""A file holds matrices in two bytes a number: twice the networks in the same bytes."""


@dataclass(frozen=True)
class Recipe:
    """Parameters of a network's training; `decay` keeps its weights small."""

    width: int = 64
    epochs: int = 25
    batch: int = 1024
    rate: float = 2e-3
    decay: float = 0.2


@dataclass(frozen=True)
class Network:
    """Weights by name, and the mean and deviation of the inputs of its training."""

    weights: dict[str, Singles]
    centre: Singles
    deviation: Singles

    def heads(self, inputs: Floats) -> Singles:
        """Middle, lower and upper gap before the softplus: [rows, horizons, 3]."""
        return _Pass(self, standardised(inputs, self.centre, self.deviation)).heads


def standardised(inputs: Floats, centre: Singles, deviation: Singles) -> Singles:
    """Inputs in deviations from their mean, within `INPUT_LIMIT`."""
    limited = np.clip((inputs - centre) / deviation, -INPUT_LIMIT, INPUT_LIMIT)
    return limited.astype(np.float32)


def softplus(x: Singles) -> Singles:
    """log(1 + exp(x))."""
    return np.logaddexp(np.float32(0), x)


def _sigmoid(x: Singles) -> Singles:
    limit = np.float32(30)
    return np.float32(1) / (np.float32(1) + np.exp(-np.clip(x, -limit, limit)))


def _linear(x: Singles, weights: Singles, bias: Singles) -> Singles:
    return (x @ weights + bias).astype(np.float32, copy=False)


def spread_out(heads: Singles) -> Singles:
    """Ordered z [rows, horizons, 3] of heads."""
    middle = heads[..., 0]
    lower, upper = softplus(heads[..., 1]), softplus(heads[..., 2])
    return np.stack([middle - lower, middle, middle + upper], axis=-1)


class _Pass:
    """A pass forward, with the values that the gradients need."""

    def __init__(self, network: Network, inputs: Singles) -> None:
        w = network.weights
        self._w, self._inputs = w, inputs
        self._a1 = _linear(inputs, w["W1"], w["b1"])
        self._g1 = _sigmoid(self._a1)
        self._h1 = self._a1 * self._g1
        self._a2 = _linear(self._h1, w["W2"], w["b2"])
        self._g2 = _sigmoid(self._a2)
        self._h2 = self._a2 * self._g2
        flat = self._h2 @ w["W3"] + inputs @ w["skip"] + w["b3"]
        self.heads: Singles = flat.reshape(len(inputs), -1, HEADS)

    def gradients(self, z: Singles) -> dict[str, Singles]:
        """Gradients of all weights, given the gradients of z."""
        heads = np.stack(
            [
                z.sum(-1),
                -z[..., 0] * _sigmoid(self.heads[..., 1]),
                z[..., 2] * _sigmoid(self.heads[..., 2]),
            ],
            axis=-1,
        )
        out = heads.reshape(len(z), -1)
        second = (out @ self._w["W3"].T) * self._g2 * (1 + self._a2 * (1 - self._g2))
        first = (second @ self._w["W2"].T) * self._g1 * (1 + self._a1 * (1 - self._g1))
        return {
            "W3": self._h2.T @ out,
            "skip": self._inputs.T @ out,
            "b3": out.sum(0),
            "W2": self._h1.T @ second,
            "b2": second.sum(0),
            "W1": self._inputs.T @ first,
            "b1": first.sum(0),
        }


@dataclass
class _Adam:
    """Kingma and Ba, 2015, with decoupled decay of the matrices."""

    weights: dict[str, Singles]
    decay: float
    step: int = 0
    first: dict[str, Singles] = field(default_factory=dict)
    second: dict[str, Singles] = field(default_factory=dict)

    def update(self, gradients: dict[str, Singles], rate: float) -> None:
        self.step += 1
        norm = np.sqrt(sum(float((g**2).sum()) for g in gradients.values()))
        scale = np.float32(min(1.0, 1.0 / (norm + 1e-9)))
        for name in self.weights:
            g = gradients[name] * scale
            m = self.first[name] = 0.9 * self.first.get(name, np.zeros_like(g)) + 0.1 * g
            v = self.second[name] = 0.999 * self.second.get(name, np.zeros_like(g)) + 0.001 * g * g
            m_hat, v_hat = m / (1 - 0.9**self.step), v / (1 - 0.999**self.step)
            self.weights[name] -= np.float32(rate) * (m_hat / (np.sqrt(v_hat) + np.float32(1e-8)))
            if g.ndim > 1:
                self.weights[name] *= np.float32(1 - rate * self.decay)


@dataclass(frozen=True)
class Lesson:
    """Samples to learn from: `inputs` [rows, inputs], `truth` and `weight` [rows, horizons].

    Truth is (y - offset) / unit, NaN if unknown; `apart` [rows] is as in `Scaled`. Example: with
    offset 8 dB and unit 2 dB, 9 dB is 0.5.
    """

    inputs: Floats
    truth: Floats
    weight: Floats
    apart: NDArray[np.bool_]
    levels: Sequence[float]
    exponential: bool


def train(lesson: Lesson, recipe: Recipe, seed: int) -> Network:
    """A network fitted to the pinball loss. The same arguments give the same weights."""
    dice = np.random.default_rng(seed)
    centre = lesson.inputs.mean(0).astype(np.float32)
    deviation = (lesson.inputs.std(0) + 1e-3).astype(np.float32)
    inputs = standardised(lesson.inputs, centre, deviation)
    known = ~np.isnan(lesson.truth)
    truth = np.where(known, lesson.truth, 0).astype(np.float32)
    weight = np.where(known, lesson.weight, 0).astype(np.float32)
    levels = np.array(lesson.levels, np.float32)
    network = Network(
        _start(dice, inputs.shape[1], truth.shape[1], recipe.width), centre, deviation
    )
    adam = _Adam(network.weights, recipe.decay)
    batches = len(inputs) // recipe.batch
    steps = max(1, recipe.epochs * batches)
    for _ in range(recipe.epochs):
        order = dice.permutation(len(inputs))
        for rows in np.array_split(order, max(1, batches)):
            going = _Pass(network, inputs[rows])
            z = spread_out(going.heads)
            if lesson.exponential:
                z = np.clip(z, -EXPONENT_LIMIT, EXPONENT_LIMIT)
            predicted = np.exp(z) if lesson.exponential else z
            slope = predicted if lesson.exponential else np.float32(1)
            above = truth[rows][..., None] > predicted
            loss = np.where(above, -levels, 1 - levels) * weight[rows][..., None]
            gradients = going.gradients((loss * slope / np.float32(len(rows))).astype(np.float32))
            warm = min(1.0, (adam.step + 1) / 100)
            adam.update(
                gradients, recipe.rate * warm * 0.5 * (1 + np.cos(np.pi * adam.step / steps))
            )
    return _stored(network)


def _stored(network: Network) -> Network:
    """Rounds matrices to the numbers in the file, so that calibration is of the shipped network."""
    kept = {
        name: w.astype(STORED).astype(np.float32) if w.ndim > 1 else w
        for name, w in network.weights.items()
    }
    return Network(kept, network.centre, network.deviation)


def _start(dice: np.random.Generator, inputs: int, horizons: int, width: int) -> dict[str, Singles]:
    outputs = horizons * HEADS

    def normal(rows: int, columns: int, size: float) -> Singles:
        return (dice.normal(size=(rows, columns)) * size).astype(np.float32)

    return {
        "W1": normal(inputs, width, np.sqrt(2 / inputs)),
        "b1": np.zeros(width, np.float32),
        "W2": normal(width, width, np.sqrt(2 / width)),
        "b2": np.zeros(width, np.float32),
        "W3": normal(width, outputs, 0.05),
        "b3": np.zeros(outputs, np.float32),
        "skip": np.zeros((inputs, outputs), np.float32),
    }
