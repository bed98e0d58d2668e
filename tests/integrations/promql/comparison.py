"""The first difference of two answers."""

from __future__ import annotations

import math
from typing import Any

RELATIVE = 1e-12
# Go keeps these series in a map, so their order at an instant is by chance.
UNORDERED = ("histogram_quantile",)


def difference(ours: dict[str, Any], theirs: dict[str, Any], query: str) -> str | None:
    """The first difference, in words; `None` if the answers are equal."""
    if ours["status"] != theirs["status"]:
        return f"{said(ours)} instead of {said(theirs)}"
    if ours["status"] == "error":
        if ours["errorType"] != theirs["errorType"]:
            return f"{said(ours)} instead of {said(theirs)}"
        return None
    one, other = ours["data"], theirs["data"]
    if one["resultType"] != other["resultType"]:
        return f"a {one['resultType']} instead of a {other['resultType']}"
    if one["resultType"] in {"scalar", "string"}:
        return point(one["result"], other["result"])
    return of_series(one["result"], other["result"], query)


def said(answer: dict[str, Any]) -> str:
    if answer["status"] == "error":
        return f"{answer['errorType']} ({answer['error'][:200]})"
    return "an answer"


def of_series(ours: list[Any], theirs: list[Any], query: str) -> str | None:
    if any(name in query for name in UNORDERED):
        ours, theirs = (
            sorted(each, key=lambda item: sorted(item["metric"].items())) for each in (ours, theirs)
        )
    metrics = [[item["metric"] for item in each] for each in (ours, theirs)]
    if len(ours) != len(theirs) or not all(map(alike, *metrics)):
        return f"series {metrics[0][:6]} instead of {metrics[1][:6]}"
    for one, other in zip(ours, theirs, strict=True):
        points = [item.get("values") or [item["value"]] for item in (one, other)]
        if len(points[0]) != len(points[1]):
            return f"{one['metric']}: {len(points[0])} points instead of {len(points[1])}"
        for pair in zip(*points, strict=True):
            found = point(*pair)
            if found:
                return f"{one['metric']}: {found}"
    return None


def alike(one: dict[str, str], other: dict[str, str]) -> bool:
    """True for equal labels. `count_values` makes labels of numbers, which may differ like them."""
    return one == other or (
        one.keys() == other.keys() and all(point([0, one[n]], [0, other[n]]) is None for n in one)
    )


def point(one: list[Any], other: list[Any]) -> str | None:
    """Compares times and values."""
    if one[0] != other[0]:
        return f"at {one[0]} instead of {other[0]}"
    if one[1] == other[1]:
        return None
    try:
        ours, theirs = float(one[1]), float(other[1])
    except ValueError:
        return f"{one[1]!r} instead of {other[1]!r}"
    if math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=0):
        return None
    return f"at {one[0]}: {ours!r} instead of {theirs!r}"
