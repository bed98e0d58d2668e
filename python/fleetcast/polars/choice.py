"""The rows that a condition of polars leaves, as the engine can choose them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import polars as pl

_ENGINE_NS = (-(2**63), 2**63 - 1)  # the times that the engine can hold
_COMPARISONS = {"Eq", "Lt", "LtEq", "Gt", "GtEq"}


@dataclass
class Choice:
    """Times, measurements, entities and tags of rows; `None` leaves no row out.

    No more than the first `rows_max` rows of the choice are needed.
    """

    start_ns: int
    end_ns: int
    measurement: str | None
    measurements: set[str] | None = field(init=False)
    entities: set[str] | None = None
    tags: dict[str, set[str]] = field(default_factory=dict)
    rows_max: int | None = None

    def __post_init__(self) -> None:
        first_ns, last_ns = _ENGINE_NS
        self.start_ns, self.end_ns = max(self.start_ns, first_ns), min(self.end_ns, last_ns)
        self.measurements = None if self.measurement is None else {self.measurement}

    def narrow(self, predicate: pl.Expr) -> None:
        """Leaves out rows for which `predicate` does not hold, as far as it is understood.

        The caller must still filter. Example: of `(pl.col("entity_id") == "a") & (pl.col("x") > 1)`
        the entity is understood.
        """
        try:
            node = json.loads(predicate.meta.serialize(format="json"))
        except (pl.exceptions.PolarsError, ValueError):
            return  # polars cannot write a function of Python as text
        self._narrow(node, predicate)

    def _narrow(self, node: object, expression: pl.Expr) -> None:
        operands = expression.meta.pop()[::-1]
        match node:
            case {"BinaryExpr": {"op": "And", "left": left, "right": right}}:
                self._narrow(left, operands[0])
                self._narrow(right, operands[1])
            case {"BinaryExpr": {"op": op, "left": left, "right": right}} if op in _COMPARISONS:
                if operands[1].meta.is_literal():
                    self._compare(left, op, _values(right, operands[1]))
            case {"Function": {"function": {"Boolean": {"IsIn": _}}, "input": [left, _]}}:
                if operands[1].meta.is_literal():
                    values = pl.select(operands[1].explode()).to_series()
                    self._compare(left, "Eq", values)
            case {"Function": {"function": {"Boolean": {"IsBetween": _}}, "input": [left, _, _]}}:
                for op, bound in zip(("GtEq", "LtEq"), operands[1:], strict=True):
                    if bound.meta.is_literal():
                        self._compare(left, op, pl.select(bound).to_series())

    def _compare(self, left: object, op: str, values: pl.Series) -> None:
        if left == {"Column": "time"}:
            self._bound(op, values)
            return
        if op != "Eq" or values.dtype not in (pl.String, pl.Categorical):
            return
        texts = {value for value in values.to_list() if value is not None}
        match left:
            case {"Column": "measurement"}:
                self.measurements = _common(self.measurements, texts)
            case {"Column": "entity_id"}:
                if "" not in texts:  # of which the engine makes no entity
                    self.entities = _common(self.entities, texts)
            case {
                "Function": {
                    "function": {"MapExpr": "Get"},
                    "input": [{"Column": "tags"}, {"Literal": {"Scalar": {"String": key}}}],
                }
            }:
                self.tags[key] = _common(self.tags.get(key), texts)

    def _bound(self, op: str, values: pl.Series) -> None:
        """Bounds the times. A bound that leaves a nanosecond too much does no harm."""
        if not isinstance(values.dtype, pl.Datetime) or values.null_count() or not len(values):
            return
        times_ns = values.dt.timestamp("ns").to_list()
        if op in ("Eq", "Gt", "GtEq"):
            self.start_ns = max(self.start_ns, min(times_ns))
        if op in ("Eq", "Lt", "LtEq"):
            self.end_ns = min(self.end_ns, max(times_ns) + 1)


def _values(node: object, literal: pl.Expr) -> pl.Series:
    """Returns a literal as a series. A text is read at once; the rest is made by a query."""
    match node:
        case {"Literal": {"Scalar": {"String": str() as text}}}:
            return pl.Series([text])
        case {"Literal": {"Scalar": {"Datetime": [int() as time, "Nanoseconds", zone]}}}:
            return pl.Series([time]).cast(pl.Datetime("ns", "UTC" if zone else None))
    return pl.select(literal).to_series()


def _common(known: set[str] | None, texts: set[str]) -> set[str]:
    return texts if known is None else known & texts
