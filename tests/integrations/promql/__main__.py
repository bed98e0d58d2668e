"""Compares drawn queries.

    python -m tests.integrations.promql [--queries 5000] [--seed 1] [--prometheus FILE]

Prints each query whose answers differ, and the number of queries by their outcome. Exits with 1 if
an answer differs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.integrations.promql.run import compared


def main() -> int:
    parser = argparse.ArgumentParser(description="PromQL beside Prometheus")
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prometheus", default=shutil.which("prometheus"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = compared(options.prometheus, Path(folder), options.queries, options.seed)
    print(dict(outcomes.counts))
    for query, found in outcomes.differences:
        print(f"{query}\n    {found}")
    return 1 if outcomes.differences else 0


if __name__ == "__main__":
    sys.exit(main())
