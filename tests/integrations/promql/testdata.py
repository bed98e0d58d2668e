"""Queries of Prometheus' own test files, over the samples that they load.

    python -m tests.integrations.promql.testdata FOLDER

FOLDER is `promql/testdata` of Prometheus' Go module (`go mod download
github.com/prometheus/prometheus@v0.42.0`). Both servers get the samples, at times of today. Answers
are compared with those of Prometheus, not with those of the file, whose times are near 1970.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.adapters.messages import snappy, time_series
from tests.integrations.promql.comparison import difference
from tests.integrations.promql.run import is_by_chance
from tests.integrations.promql.servers import both, now_ms

GAP_MS = 3 * 3_600_000
SAMPLES_PER_MESSAGE = 4000
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SERIES = re.compile(r"^\s+([\w:]+)?(?:\{(.*)\})?\s+([^#]+)")
PAIR = re.compile(r'([\w]+)\s*=\s*"([^"]*)"')
RUN = re.compile(r"^(-?[\d.e]+)([+-][\d.]+)?x(\d+)$")
EVAL = re.compile(r"^eval(?:_ordered|_fail|_warn)* instant at (\S+)\s+(.*)")


def milliseconds(text: str) -> int:
    """Example: `1m30s` and `90` are the same."""
    parts = re.findall(r"(\d+)(ms|[smhd])", text)
    return sum(int(n) * UNITS[u] for n, u in parts) if parts else int(float(text) * 1000)


def values(text: str) -> list[float | None]:
    """Example: `1+2x2 _` is 1, 3, 5 and no value."""
    found: list[float | None] = []
    for word in text.split():
        run = RUN.match(word)
        if run:
            first, step, times = float(run[1]), float(run[2] or 0), int(run[3])
            found += [first + step * at for at in range(times + 1)]
        elif re.match(r"^_x\d+$", word):
            found += [None] * int(word[2:])
        else:
            found.append(float(word) if re.match(r"^-?[\d.]", word) else None)
    return found


def blocks(text: str):
    """Samples by labels, and queries with their times, between two `clear`."""
    samples, queries, step_ms = {}, [], 0
    for line in text.splitlines():
        if line.startswith("clear"):
            yield samples, queries
            samples, queries = {}, []
        elif line.startswith("load"):
            step_ms = milliseconds(line.split()[1])
        elif EVAL.match(line):
            at, query = EVAL.match(line).groups()
            queries.append((milliseconds(at), query))
            step_ms = 0
        elif step_ms and SERIES.match(line) and "{{" not in line:
            metric, pairs, written = SERIES.match(line).groups()
            labels = dict(PAIR.findall(pairs or ""))
            if metric:
                labels["__name__"] = metric
            points = samples.setdefault(tuple(sorted(labels.items())), [])
            points += [(v, at * step_ms) for at, v in enumerate(values(written)) if v is not None]
    yield samples, queries


def main() -> int:
    found = [
        (file.name, block)
        for file in sorted(Path(sys.argv[1]).glob("*.test"))
        for block in blocks(file.read_text())
    ]
    lengths = [
        max([t for points in samples.values() for _, t in points] + [at for at, _ in queries] + [0])
        for _, (samples, queries) in found
    ]
    start_ms = now_ms() - sum(lengths) - GAP_MS * (len(found) + 1)
    counts: dict[str, Counter[str]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        both(shutil.which("prometheus"), Path(folder), ()) as (ours, theirs),
    ):
        for (name, (samples, queries)), length_ms in zip(found, lengths, strict=True):
            write(samples, start_ms, (ours, theirs))
            for at_ms, query in queries:
                given = {"time": str((start_ms + at_ms) / 1000)}
                answers = [s.ask("/api/v1/query", query=query, **given) for s in (ours, theirs)]
                differs = difference(*answers, query)
                if differs and is_by_chance(theirs, answers, query, "query", given):
                    differs = None
                outcome = "different" if differs else answers[1]["status"]
                counts.setdefault(name, Counter())[outcome] += 1
                if differs:
                    print(f"{name}: {query}\n    {differs[:300]}")
            start_ms += length_ms + GAP_MS
    for name, of_file in counts.items():
        print(name, dict(of_file))
    return 0


def write(samples, start_ms, servers):
    """Sends samples in order of time, some thousand at once."""
    points = [(at, key, value) for key, of_key in samples.items() for value, at in of_key]
    points.sort(key=lambda point: point[0])
    for first in range(0, len(points), SAMPLES_PER_MESSAGE):
        of_message = {}
        for at, key, value in points[first : first + SAMPLES_PER_MESSAGE]:
            of_message.setdefault(key, []).append((value, start_ms + at))
        body = b"".join(time_series(dict(key), found) for key, found in of_message.items())
        for server in servers:
            server.write(snappy(body))


if __name__ == "__main__":
    sys.exit(main())
