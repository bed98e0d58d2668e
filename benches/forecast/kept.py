"""Cost of `GET /predictions` if all forecasts are kept, in turn with `GET /topology`.

    python -m benches.forecast.kept [--rounds 15]

A real service with two workers and one connection. The forecasts and the topology are of the same 1
or 100 links.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time

from benches.harness.measure import alternate, cpu_seconds_of, with_children
from benches.harness.paths import DATA
from benches.harness.servers import Getter, service
from fleetcast.engine import format_time

FOLDER = DATA / "kept"
REQUESTS = 100
SIZES = (1, 100)
MINUTES = 20
MINUTE_NS = 60_000_000_000


def rows(size):
    """A row a minute of links of one size of request."""
    now_ns = time.time_ns()
    for minute in range(1, MINUTES + 1):
        for link in range(size):
            yield {
                "measurement": "link",
                "time": format_time(now_ns - minute * MINUTE_NS),
                "tags": {"entity_id": f"{size}-{link}"},
                "fields": {"snr_db": 12 + link / 100 + minute % 3},
            }


def asked_for(size):
    """Parameters by path."""
    return {
        "predictions": {"link_ids": [f"{size}-{link}" for link in range(size)]},
        "topology": {"measurement": "link", "freshness_seconds": 3600},
    }


def measured(running, key, rounds, size):
    """Medians of one request: microseconds by path and kind."""
    getter, processes = Getter(running.address, key), with_children(running.process.pid)
    asked = asked_for(size)
    for _ in range(8):  # each worker loads what it needs
        getter.get("/predictions", **asked["predictions"])
    assert len(json.loads(bytes(getter.body))["items"]) == size * 4

    def work(path, kind):
        before = cpu_seconds_of(processes)
        seconds = [getter.get(f"/{path}", **asked[path]) for _ in range(REQUESTS)]
        if kind == "time":
            return statistics.median(seconds) * 1e6
        return (cpu_seconds_of(processes) - before) / REQUESTS * 1e6

    works = {
        (path, kind): lambda path=path, kind=kind: work(path, kind)
        for kind in ("time", "CPU")
        for path in asked
    }
    figures = alternate(rounds, works)
    getter.close()
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for size in SIZES:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        key = service.prepare(FOLDER, "bench")
        running = service.start(FOLDER, key, "--set", "forecast.fresh_seconds=3600")
        try:
            batch = list(rows(size))
            for first in range(0, len(batch), 1000):
                assert running.post(batch[first : first + 1000], key=key).status == 202
            for (path, kind), microseconds in measured(running, key, rounds, size).items():
                print(f"{size:4} links  {path:12} {kind:5} p50 {microseconds:7.0f} us")
        finally:
            running.stop()


if __name__ == "__main__":
    main()
