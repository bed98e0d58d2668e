"""The rows that a condition of polars leaves, as the engine can choose them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import polars as pl

_ENGINE_NS = (-(2**63), 2**63 - 1)  # the times that the engine can hold
_COMPARISONS = {"Eq", "Lt", "LtEq", "Gt", "GtEq"}
# Comparisons with the lower and the upper bound of `is_between`, by which bounds are included.
_BETWEEN = {
    "Both": ("GtEq", "LtEq"),
    "Left": ("GtEq", "Lt"),
    "Right": ("Gt", "LtEq"),
    "None": ("Gt", "Lt"),
}


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

    def narrow(self, predicate: pl.Expr) -> bool:
        """Leaves out rows for which `predicate` does not hold, as far as it is understood.

        Returns true if the choice has no other rows, so that the caller need not filter. Example:
        of `(pl.col("entity_id") == "a") & (pl.col("x") > 1)` only the entity is understood, and the
        result is false.
        """
        try:
            node = json.loads(predicate.meta.serialize(format="json"))
        except (pl.exceptions.PolarsError, ValueError):
            return False  # polars cannot write a function of Python as text
        return self._narrow(node, predicate)

    def _narrow(self, node: object, expression: pl.Expr) -> bool:
        operands = expression.meta.pop()[::-1]
        match node:
            case {"BinaryExpr": {"op": "And", "left": left, "right": right}}:
                sides = [self._narrow(left, operands[0]), self._narrow(right, operands[1])]
                return all(sides)
            case {"BinaryExpr": {"op": op, "left": left, "right": right}} if op in _COMPARISONS:
                return self._compared(left, op, right, operands[1])
            # With `nulls_equal`, rows without an entity may be meant.
            case {
                "Function": {
                    "function": {"Boolean": {"IsIn": {"nulls_equal": False}}},
                    "input": [left, right],
                }
            }:
                values = _values(right, operands[1])
                return values is not None and self._compare(left, "Eq", values)
            case {
                "Function": {
                    "function": {"Boolean": {"IsBetween": {"closed": closed}}},
                    "input": [left, *bounds],
                }
            }:
                parts = zip(_BETWEEN[closed], bounds, operands[1:], strict=True)
                sides = [self._compared(left, op, bound, each) for op, bound, each in parts]
                return all(sides)
        return False

    def _compared(self, left: object, op: str, right: object, operand: pl.Expr) -> bool:
        values = _values(right, operand)
        return values is not None and len(values) == 1 and self._compare(left, op, values)

    def _compare(self, left: object, op: str, values: list[Any]) -> bool:
        """Narrows one column, and returns as `narrow`."""
        if left == {"Column": "time"}:
            return self._bound(op, values)
        texts = {value for value in values if value is not None}
        if op != "Eq" or not all(isinstance(text, str) for text in texts):
            return False
        match left:
            case {"Column": "measurement"}:
                self.measurements = _common(self.measurements, texts)
                return True
            case {"Column": "entity_id"} if "" not in texts:  # of which the engine makes no entity
                self.entities = _common(self.entities, texts)
                return True
            case {
                "Function": {
                    "function": {"MapExpr": "Get"},
                    "input": [{"Column": "tags"}, {"Literal": {"Scalar": {"String": key}}}],
                }
            }:
                self.tags[key] = _common(self.tags.get(key), texts)
                return True
        return False

    def _bound(self, op: str, times_ns: list[Any]) -> bool:
        """Bounds the times, and returns as `narrow`."""
        if not times_ns or not all(isinstance(time, int) for time in times_ns):
            return False
        first_ns, last_ns = min(times_ns), max(times_ns)
        if op in ("Eq", "Gt", "GtEq"):
            after = first_ns + (op == "Gt")
            self.start_ns = min(max(self.start_ns, after), _ENGINE_NS[1])
        if op in ("Eq", "Lt", "LtEq"):
            before = last_ns + (op != "Lt")
            self.end_ns = max(min(self.end_ns, before), _ENGINE_NS[0])
        return op != "Eq" or first_ns == last_ns


def _values(node: object, literal: pl.Expr) -> list[Any] | None:
    """Returns the values of a literal: texts, times in nanoseconds, and `None` for null.

    Returns `None` for other literals. A plain text or time is read at once, other literals by a
    query.
    """
    match node:
        case {"Literal": {"Scalar": {"String": str() as text}}}:
            return [text]
        case {"Literal": {"Scalar": {"Datetime": [int() as time, "Nanoseconds", _]}}}:
            return [time]
    if not literal.meta.is_literal():
        return None
    values = pl.select(literal).to_series()
    if isinstance(values.dtype, pl.List):
        values = values.explode()
    if values.dtype in (pl.String, pl.Categorical):
        return values.to_list()
    # polars compares other units with a column of nanoseconds only after it has made them such.
    if values.dtype == pl.Datetime("ns", "UTC"):
        return values.dt.timestamp("ns").to_list()
    return None


def _common(known: set[str] | None, texts: set[str]) -> set[str]:
    return texts if known is None else known & texts
