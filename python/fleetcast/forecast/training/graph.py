"""Writes formulas as an ONNX graph: the same Python as on arrays, run on `Expression`s.

Operators of ONNX, opset 18: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fleetcast.forecast.onnx import INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

OPSET = 18
IR_VERSION = 9
"""The version of opset 18. The oldest sufficient version is readable by most runtimes."""


class Graph:
    """A graph under construction: one input [rows, features], one output."""

    def __init__(self, features: int) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._features = features
        self.input = Expression(self, INPUT)

    def apply(
        self,
        operator: str,
        *inputs: Expression | NDArray[np.generic],
        **options: Any,  # noqa: ANN401 - attributes of any operator
    ) -> Expression:
        """Adds an operator to the graph and returns its result."""
        names = [self._name(value) for value in inputs]
        output = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, names, [output], **options))
        return Expression(self, output)

    def _name(self, value: Expression | NDArray[np.generic]) -> str:
        if isinstance(value, Expression):
            return value.name
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def model(self, output: Expression, shape: Sequence[int], metadata: Mapping[str, str]) -> bytes:
        """Returns the file: `output` is [rows, *shape]."""
        nodes = [*self._nodes, helper.make_node("Identity", [output.name], [OUTPUT])]
        double = TensorProto.DOUBLE
        graph = helper.make_graph(
            nodes,
            metadata["family"],
            [helper.make_tensor_value_info(INPUT, double, ["rows", self._features])],
            [helper.make_tensor_value_info(OUTPUT, double, ["rows", *shape])],
            self._constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="fleetcast",
        )
        helper.set_model_props(model, dict(metadata))
        onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


@dataclass(frozen=True)
class Expression:
    """A value of a graph, of doubles unless it was made with `single`."""

    graph: Graph
    name: str

    def __add__(self, other: Expression | float) -> Expression:
        return self.graph.apply("Add", self, _double(other))

    def __radd__(self, other: float) -> Expression:
        return self + other

    def __sub__(self, other: Expression | float) -> Expression:
        return self.graph.apply("Sub", self, _double(other))

    def __mul__(self, other: Expression | float) -> Expression:
        return self.graph.apply("Mul", self, _double(other))

    def __rmul__(self, other: float) -> Expression:
        return self * other

    def __truediv__(self, other: Expression | float) -> Expression:
        return self.graph.apply("Div", self, _double(other))


def _double(value: Expression | float) -> Expression | NDArray[np.float64]:
    return value if isinstance(value, Expression) else np.array(value, np.float64)


class GraphFunctions:
    """The functions of `ArrayFunctions`, on expressions."""

    def take(self, x: Expression, columns: Sequence[int]) -> Expression:
        return x.graph.apply("Gather", x, np.array(columns, np.int64), axis=1)

    def log(self, x: Expression) -> Expression:
        return x.graph.apply("Log", x)

    def exp(self, x: Expression) -> Expression:
        return x.graph.apply("Exp", x)

    def sqrt(self, x: Expression) -> Expression:
        return x.graph.apply("Sqrt", x)

    def sine(self, degrees: Expression) -> Expression:
        return degrees.graph.apply("Sin", degrees * float(np.pi / 180))

    def squashed(self, x: Expression) -> Expression:
        # asinh by functions that runtimes have for doubles; the sign is put back by hand.
        size = x.graph.apply("Abs", x)
        return x.graph.apply("Sign", x) * self.log(size + self.sqrt(size * size + 1.0))

    def known(self, x: Expression) -> Expression:
        zero = np.zeros((), np.float64)
        return x.graph.apply("Where", x.graph.apply("IsNaN", x), zero, x)

    def missing(self, x: Expression) -> Expression:
        return x.graph.apply("Cast", x.graph.apply("IsNaN", x), to=TensorProto.DOUBLE)

    def nothing(self, x: Expression) -> Expression:
        zero = np.zeros((), np.float64)
        return x.graph.apply("Cast", x.graph.apply("Equal", x, zero), to=TensorProto.DOUBLE)

    def joined(self, parts: Sequence[Expression]) -> Expression:
        return parts[0].graph.apply("Concat", *parts, axis=1)
