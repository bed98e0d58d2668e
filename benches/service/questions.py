"""Questions in PromQL beside Prometheus: CPU and time of a question over the same samples.

    python -m benches.service.questions [--rounds 4] [--only TEXT] [--before DIR]

Both servers take six hours of 1,220 series, and two samples of 100,000 series, by remote write.
Then each question goes to one and the other in turn, over one connection each. CPU is that of all
processes of the service except the maintenance process, and of Prometheus. Prometheus is the
program in PATH, or `PROMETHEUS=FILE`. `--before` asks the service of `tools/before` instead.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benches.harness.measure import cpu_seconds_of, with_children
from benches.harness.paths import TARGET
from benches.harness.servers import is_maintenance, package
from tests.adapters.messages import snappy, time_series
from tests.integrations.programs import found
from tests.integrations.promql.servers import both, now_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integrations.promql.servers import Server

STEP_MS = 15_000
STEPS = 1_440  # six hours
MESSAGE_STEPS = 5
MANY = 100_000
MESSAGE_SERIES = 10_000
BOUNDS = ("0.1", "0.25", "0.5", "1", "2.5", "5", "10", "25", "50", "+Inf")


class Question(NamedTuple):
    text: str
    query: str
    repeats: int
    """How often it is asked in a round."""
    is_range: bool = False
    """Asked for each minute of the six hours."""


QUESTIONS = (
    Question("one series", 'rate(requests_total{instance="i7"}[5m])', 200, is_range=True),
    Question("100 series", "rate(requests_total[5m])", 20, is_range=True),
    Question(
        "histogram of 120 series",
        "histogram_quantile(0.9, sum by (le) (rate(latency_bucket[5m])))",
        20,
        is_range=True,
    ),
    Question("1,000 series", "sum by (room) (rate(fans_total[5m]))", 6, is_range=True),
    Question("1 of 100,000", 'count(seen{id="x07777"})', 200),
    Question("2,000 of 100,000", 'count(seen{zone="z7"})', 50),
    Question("1,000 of 100,000", 'count(seen{id=~"x0.*7"})', 20),
    Question("20,000 of 100,000", 'count(seen{id=~"x.*[37]"})', 4),
)


def fleet() -> list[dict[str, str]]:
    """Labels of the series that have a sample each 15 seconds."""
    requests = [{"__name__": "requests_total", "instance": f"i{at}"} for at in range(100)]
    latency = [
        {"__name__": "latency_bucket", "instance": f"i{at}", "le": le}
        for at, le in product(range(12), BOUNDS)
    ]
    fans = [
        {"__name__": "fans_total", "instance": f"i{at % 100}", "room": f"r{at // 100}"}
        for at in range(1_000)
    ]
    return requests + latency + fans


def many() -> list[dict[str, str]]:
    """Labels of series that differ by id. Ids begin with a letter, and have five digits."""
    return [
        {"__name__": "seen", "id": f"x{number:05}", "zone": f"z{number % 50}"}
        for number in range(MANY)
    ]


def messages(start_ms: int) -> Iterator[bytes]:
    """Bodies in order of time."""
    drawn = random.Random(7)
    series = fleet()
    values = [0.0] * len(series)
    for first in range(0, STEPS, MESSAGE_STEPS):
        body = b""
        for at, labels in enumerate(series):
            points = []
            for step in range(first, first + MESSAGE_STEPS):
                values[at] += drawn.randrange(100)
                points.append((values[at], start_ms + step * STEP_MS))
            body += time_series(labels, points)
        yield snappy(body)
    ids = many()
    end_ms = start_ms + STEPS * STEP_MS
    for time_ms in (end_ms - 60_000, end_ms - 45_000):
        for first in range(0, MANY, MESSAGE_SERIES):
            slice_of = ids[first : first + MESSAGE_SERIES]
            yield snappy(b"".join(time_series(labels, [(1.0, time_ms)]) for labels in slice_of))


class Cost(NamedTuple):
    cpu_ms: float
    """Mean of a question."""
    wall_ms: float
    """Median of a question."""


def asked(server: Server, processes: list[int], question: Question, end_ms: int) -> Cost:
    """Asks the question `repeats` times."""
    if question.is_range:
        start = str((end_ms - STEPS * STEP_MS) / 1000)
        path, given = "query_range", {"start": start, "end": str(end_ms / 1000), "step": "60"}
    else:
        path, given = "query", {"time": str((end_ms - 30_000) / 1000)}
    taken = []
    before = cpu_seconds_of(processes)
    for _ in range(question.repeats):
        begin = time.perf_counter()
        status, text = server.send(f"/api/v1/{path}", query=question.query, **given)
        taken.append(time.perf_counter() - begin)
        assert status == 200, text
        assert b'"values":[[' in text or b'"value":[' in text, question
    used = cpu_seconds_of(processes) - before
    return Cost(1e3 * used / question.repeats, 1e3 * statistics.median(taken))


def measure(
    program: str, folder: Path, rounds: int, questions: list[Question], site: Path | None
) -> None:
    """Prints a line for each question."""
    start_ms = (now_ms() - (STEPS + 4) * STEP_MS) // STEP_MS * STEP_MS
    end_ms = start_ms + STEPS * STEP_MS
    with package(site), both(program, folder, messages(start_ms)) as servers:
        processes = [
            [each for each in with_children(server.pid) if not is_maintenance(each)]
            for server in servers
        ]
        print("| question | CPU, ms | Prometheus | share | time, ms | Prometheus | share |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for question in questions:
            costs: tuple[list[Cost], list[Cost]] = ([], [])
            for _ in range(rounds + 1):
                for server, of_server, taken in zip(servers, processes, costs, strict=True):
                    taken.append(asked(server, of_server, question, end_ms))
            # The first round fills the caches of both.
            means = [Cost(*map(statistics.mean, zip(*taken[1:], strict=True))) for taken in costs]
            print(line(question, *means), flush=True)


def line(question: Question, ours: Cost, theirs: Cost) -> str:
    """A line of the table."""
    figures = [ours.cpu_ms, theirs.cpu_ms, ours.cpu_ms / theirs.cpu_ms]
    figures += [ours.wall_ms, theirs.wall_ms, ours.wall_ms / theirs.wall_ms]
    texts = (f"{figure:.2f}" for figure in figures)
    return f"| {question.text}: `{question.query}` | {' | '.join(texts)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", default="", help="questions whose name has this text")
    parser.add_argument("--before", type=Path, help="folder of tools/before: that service instead")
    options = parser.parse_args()
    site = None if options.before is None else options.before / "site"
    program = found("prometheus")
    if program is None:
        raise SystemExit("no prometheus here, nor in PROMETHEUS")
    print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    questions = [each for each in QUESTIONS if options.only in each.text]
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        measure(program, Path(folder), options.rounds, questions, site)


if __name__ == "__main__":
    main()
