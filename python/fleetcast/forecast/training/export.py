"""Networks, their scaling and their calibration as one ONNX file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.features import view
from fleetcast.forecast.training.graph import Expression, Graph, GraphFunctions
from fleetcast.forecast.training.network import (
    EXPONENT_LIMIT,
    HEADS,
    INPUT_LIMIT,
    STORED,
)
from fleetcast.forecast.training.scaling import scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.training.calibrate import Calibration
    from fleetcast.forecast.training.network import Network


@dataclass(frozen=True)
class Trained:
    """Parts of a model: networks whose heads are averaged, and their calibration."""

    family: Family
    networks: Sequence[Network]
    calibration: Calibration
    model_version: str
    training_data: str


def exported(trained: Trained) -> bytes:
    """The ONNX file: features [rows, features] to quantiles [rows, horizons, quantiles]."""
    family = trained.family
    features = view(family)
    graph = Graph(len(features.features))
    scale = scaled(family, GraphFunctions(), graph.input)
    inputs = _standardised(trained.networks[0], scale.inputs)  # all networks have the same inputs
    heads = _mean([_heads(network, inputs, family) for network in trained.networks])
    middle, lower, upper = (_head(heads, index) for index in range(HEADS))
    lower, upper = (x.graph.apply("Softplus", x) for x in (lower, upper))
    calibration = trained.calibration
    below = _of_kind(scale.apart, calibration.lower)
    middle = graph.apply("Add", middle, _times(graph.apply("Add", lower, upper), calibration.shift))
    bounds = [
        graph.apply("Sub", middle, graph.apply("Mul", lower, below)),
        middle,
        graph.apply("Add", middle, _times(upper, calibration.upper)),
    ]
    answers = []
    for bound in bounds:
        z = graph.apply("Cast", bound, to=TensorProto.DOUBLE)
        if family is DEMAND:
            limit = np.array(EXPONENT_LIMIT, np.float64)
            z = graph.apply("Exp", graph.apply("Clip", z, -limit, limit))
        answer = scale.offset + scale.unit * z
        if family is DEMAND:
            answer = graph.apply("Max", answer, np.zeros((), np.float64))
        answers.append(graph.apply("Unsqueeze", answer, np.array([2], np.int64)))
    return graph.model(
        graph.apply("Concat", *answers, axis=2),
        (len(family.horizons_minutes), len(family.quantiles)),
        {
            "family": family.name,
            "model_version": trained.model_version,
            "feature_view_id": features.id,
            "horizons_minutes": json.dumps(family.horizons_minutes),
            "quantiles": json.dumps(family.quantiles),
            "training_data": trained.training_data,
        },
    )


def _standardised(network: Network, inputs: Expression) -> Expression:
    graph = inputs.graph
    centred = graph.apply("Sub", inputs, network.centre.astype(np.float64))
    x = graph.apply("Div", centred, network.deviation.astype(np.float64))
    limit = np.array(INPUT_LIMIT, np.float64)
    return graph.apply("Cast", graph.apply("Clip", x, -limit, limit), to=TensorProto.FLOAT)


def _heads(network: Network, x: Expression, family: Family) -> Expression:
    graph = x.graph
    w = {name: _weights(graph, array) for name, array in network.weights.items()}
    first = _hidden(x, w["W1"], w["b1"])
    second = _hidden(first, w["W2"], w["b2"])
    out = graph.apply("Gemm", second, w["W3"], w["b3"])
    out = graph.apply("Add", out, graph.apply("MatMul", x, w["skip"]))
    shape = np.array([-1, len(family.horizons_minutes), HEADS], np.int64)
    return graph.apply("Reshape", out, shape)


def _weights(graph: Graph, array: np.ndarray) -> Expression:
    """Weights of two bytes in the file if they were rounded to that; four bytes to compute with."""
    stored = array.astype(STORED) if array.ndim > 1 else array
    return graph.apply("Cast", stored, to=TensorProto.FLOAT)


def _hidden(x: Expression, weights: Expression, bias: Expression) -> Expression:
    sums = x.graph.apply("Gemm", x, weights, bias)
    return x.graph.apply("Mul", sums, x.graph.apply("Sigmoid", sums))


def _mean(heads: Sequence[Expression]) -> Expression:
    return heads[0].graph.apply("Mean", *heads)


def _head(heads: Expression, index: int) -> Expression:
    return heads.graph.apply("Gather", heads, np.array(index, np.int64), axis=2)


def _times(x: Expression, factors: np.ndarray) -> Expression:
    return x.graph.apply("Mul", x, factors.astype(np.float32))


def _of_kind(apart: Expression, factors: np.ndarray) -> Expression:
    """Each row's factors [rows, horizons], of factors [kinds, horizons]."""
    kind = apart.graph.apply("Cast", apart, to=TensorProto.INT64)
    row = apart.graph.apply("Gather", factors.astype(np.float32), kind, axis=0)
    return apart.graph.apply("Reshape", row, np.array([-1, factors.shape[1]], np.int64))
