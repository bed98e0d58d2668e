"""Draws queries, asks both servers, and counts the outcomes."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tests.integrations.promql.comparison import difference, of_series
from tests.integrations.promql.grammar import Grammar
from tests.integrations.promql.samples import STEP_MS, fleet, messages
from tests.integrations.promql.servers import both, now_ms

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 480  # two hours
REPEATS = 8
STEPS_MS = {"15": 15_000, "30s": 30_000, "1m": 60_000, "77": 77_000, "5m": 300_000}


class Outcomes(NamedTuple):
    counts: Counter[str]
    differences: list[tuple[str, str]]


def compared(program: str, folder: Path, queries: int, seed: int) -> Outcomes:
    """Compares this many drawn queries, each at an instant or over a range."""
    start_ms = (now_ms() - (STEPS + 60) * STEP_MS) // STEP_MS * STEP_MS
    end_ms = start_ms + STEPS * STEP_MS
    series = fleet(seed, start_ms, STEPS)
    outcomes = Outcomes(Counter(), [])
    drawn = random.Random(seed)
    middle = (start_ms + end_ms) // 2000
    grammar = Grammar(seed, (start_ms // 1000 + 600, middle, end_ms // 1000))
    with both(program, folder, messages(series, start_ms, STEPS)) as (ours, theirs):
        for _ in range(queries):
            query = grammar.query()
            at = drawn.randrange(start_ms - 60_000, end_ms + 400_000)
            if drawn.random() < 0.5:
                path, given = "query", {"time": str(at / 1000)}
            else:
                span = drawn.randrange(0, 1_800_000)
                path = "query_range"
                step = drawn.choice(tuple(STEPS_MS))
                given = {"start": str(at / 1000), "end": str((at + span) / 1000), "step": step}
            answers = [each.ask(f"/api/v1/{path}", query=query, **given) for each in (ours, theirs)]
            found = difference(*answers, query)
            if found is not None and is_by_chance(theirs, answers, query, path, given):
                outcomes.counts["by chance"] += 1
            elif found is not None and is_as_at_instants(theirs, answers, query, given):
                outcomes.counts["fault of a range"] += 1
            elif found is not None:
                outcomes.counts["different"] += 1
                outcomes.differences.append((f"{path} {given} {query}", found))
            elif answers[1]["status"] == "error":
                outcomes.counts["refused by both"] += 1
            elif not answers[1]["data"]["result"]:
                outcomes.counts["equal, empty"] += 1
            else:
                outcomes.counts["equal"] += 1
    return outcomes


def is_by_chance(theirs, answers, query, path, given):
    """True if Prometheus itself answers in another way when it is asked again.

    Go visits maps in an order by chance: the series of a subquery, and so which of equal values
    `topk` keeps. The order of series at one instant is no difference then.
    """
    ours, first = answers
    if in_order(ours) is not None and in_order(ours) == in_order(first):
        values = [[item["value"][1] for item in each["data"]["result"]] for each in answers]
        if values[0] == values[1]:  # equal values, sorted by an algorithm that is not stable
            return True
    for _ in range(REPEATS):
        again = theirs.ask(f"/api/v1/{path}", query=query, **given)
        if difference(again, first, "") is not None:
            return True
    return False


def is_as_at_instants(theirs, answers, query, given):
    """True if we answer for a range what Prometheus answers at each instant of the range.

    Three faults of Prometheus 2.42 need a range. The fixed range of `predict_linear(x[5m] @ 0, 1)`
    moves from step to step. `count_values` by three labels loses a label after the first step. `-x`
    is refused if series of different steps have the same labels without their names.
    """
    if "step" not in given or answers[0]["status"] == "error":
        return False
    first_ms, last_ms = (round(float(given[name]) * 1000) for name in ("start", "end"))
    fixed = query.replace("start()", given["start"]).replace("end()", given["end"])
    points: dict[str, list[object]] = {}
    metrics = {}
    for at_ms in range(first_ms, last_ms + 1, STEPS_MS[given["step"]]):
        answer = theirs.ask("/api/v1/query", query=fixed, time=str(at_ms / 1000))
        if answer["status"] == "error":
            return False
        for metric, value in vector(answer["data"]):
            key = str(sorted(metric.items()))
            metrics[key] = metric
            points.setdefault(key, []).append(value)
    ours = {str(sorted(item["metric"].items())): item for item in answers[0]["data"]["result"]}
    expected = [{"metric": metrics[key], "values": points[key]} for key in sorted(points)]
    return of_series([ours[key] for key in sorted(ours)], expected, query) is None


def vector(data):
    """Labels and value of each series at an instant; a scalar is a series without labels."""
    if data["resultType"] == "scalar":
        return [({}, data["result"])]
    return [(item["metric"], item["value"]) for item in data["result"]]


def in_order(answer):
    """The series of an instant, sorted; `None` for every other answer."""
    result = answer.get("data", {}).get("result")
    is_vector = answer.get("data", {}).get("resultType") == "vector"
    return sorted(map(str, result)) if is_vector else None
