"""Series of all kinds, and the messages of remote write that carry them."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

from tests.adapters.messages import snappy, time_series

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP_MS = 15_000
SLICE_STEPS = 40
Labels = tuple[tuple[str, str], ...]
Series = dict[Labels, list[tuple[int, float]]]


def labels(metric: str, **others: str) -> Labels:
    return tuple(sorted({"__name__": metric, **others}.items()))


def fleet(seed: int, start_ms: int, steps: int) -> Series:
    """Counters with resets, gauges, histograms, booleans; with gaps, late begins and early ends."""
    drawn = random.Random(seed)
    series: Series = {}
    for instance, job in product(("a:1", "b:1", "c:2"), ("api", "db")):
        named = {"instance": instance, "job": job}
        for code in ("200", "404", "500"):
            series[labels("requests_total", code=code, path="/x", **named)] = counter(drawn, steps)
        for room in ("hall", "lab"):
            series[labels("temperature", room=room, **named)] = gauge(drawn, steps)
        series[labels("up", **named)] = [(s, float(drawn.random() < 0.9)) for s in range(steps)]
        series[labels("build_info", version=drawn.choice(("1.0", "1.1")), **named)] = [
            (step, 1.0) for step in range(steps)
        ]
        for le, values in histogram(drawn, steps).items():
            series[labels("latency_bucket", le=le, **named)] = values
    series[labels("sparse", zone="z")] = [(step, float(step)) for step in range(0, steps, 27)]
    series[labels("sparse", zone="y")] = [(step, -float(step)) for step in range(5, steps, 21)]
    series[labels("level", instance="a:1")] = [(step, 42.0) for step in range(steps)]
    series[labels("tiny", instance="a:1")] = [(step, step * 1e-9) for step in range(steps)]
    series[labels("huge", instance="a:1")] = [(step, step * 1e21) for step in range(steps)]
    jitter = {key: drawn.choice((0, 0, 137, 7_501)) for key in sorted(series)}
    return {
        key: [(start_ms + step * STEP_MS + jitter[key], value) for step, value in points]
        for key, points in sorted(series.items())
    }


def counter(drawn: random.Random, steps: int) -> list[tuple[int, float]]:
    value, points = float(drawn.randrange(1000)), []
    first, last = drawn.choice((0, 0, 0, 100)), drawn.choice((steps, steps, steps - 90))
    for step in range(steps):
        value += drawn.choice((0, 0, 1, 2, 5, 12))
        if drawn.random() < 0.01:
            value = float(drawn.randrange(5))
        if first <= step < last and drawn.random() > 0.02:
            points.append((step, value))
    return points


def gauge(drawn: random.Random, steps: int) -> list[tuple[int, float]]:
    value, points = drawn.uniform(-20, 40), []
    gap = drawn.randrange(steps)
    for step in range(steps):
        value += drawn.uniform(-1, 1)
        if not gap <= step < gap + 30:
            points.append((step, round(value, drawn.choice((0, 2, 5)))))
    return points


def histogram(drawn: random.Random, steps: int) -> dict[str, list[tuple[int, float]]]:
    bounds = ("0.1", "0.5", "1", "2.5", "+Inf")
    counts = [0.0] * len(bounds)
    found: dict[str, list[tuple[int, float]]] = {bound: [] for bound in bounds}
    for step in range(steps):
        for _ in range(drawn.randrange(4)):
            first = drawn.randrange(len(bounds))
            for at in range(first, len(bounds)):
                counts[at] += 1
        for bound, count in zip(bounds, counts, strict=True):
            found[bound].append((step, count))
    return found


def messages(series: Series, start_ms: int, steps: int) -> Iterator[bytes]:
    """Bodies in order of time: Prometheus takes no sample that is much older than the newest."""
    for first in range(0, steps, SLICE_STEPS):
        low, high = (start_ms + at * STEP_MS for at in (first, first + SLICE_STEPS))
        body = b""
        for key, points in series.items():
            within = [(value, time_ms) for time_ms, value in points if low <= time_ms < high]
            if within:
                body += time_series(dict(key), within)
        yield snappy(body)
