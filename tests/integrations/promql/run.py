"""Draws queries, asks both servers, and counts the outcomes."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tests.integrations.promql.comparison import difference
from tests.integrations.promql.grammar import Grammar
from tests.integrations.promql.samples import STEP_MS, fleet, messages
from tests.integrations.promql.servers import both, now_ms

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 480  # two hours
REPEATS = 8
STEP_TEXTS = ("15", "30s", "1m", "77", "5m")


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
                step = drawn.choice(STEP_TEXTS)
                given = {"start": str(at / 1000), "end": str((at + span) / 1000), "step": step}
            answers = [each.ask(f"/api/v1/{path}", query=query, **given) for each in (ours, theirs)]
            found = difference(*answers, query)
            if found is not None and is_by_chance(theirs, answers, query, path, given):
                outcomes.counts["by chance"] += 1
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


def in_order(answer):
    """The series of an instant, sorted; `None` for every other answer."""
    result = answer.get("data", {}).get("result")
    is_vector = answer.get("data", {}).get("resultType") == "vector"
    return sorted(map(str, result)) if is_vector else None
