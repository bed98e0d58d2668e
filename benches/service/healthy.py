"""A client that goes on writing and reading at its own pace, in a process of its own.

Arguments: address, key. Each line on stdin, `{"seconds": 5}`, is answered by one line on stdout:
requests, median and 99th percentile of their latency in seconds, and how many failed.
"""

from __future__ import annotations

import http.client
import itertools
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta

from benches.harness.driving import answer_commands
from benches.inputs import fleet

PERIOD_SECONDS = 0.01
RECORDS = 100
ENTITY = fleet.entity_id(1)


def requests(key: str):
    """A write, a read of what was written, and a probe on a fresh connection, over and over."""
    start = datetime.now(UTC) - timedelta(minutes=10)
    since = f"{start:%Y-%m-%dT%H:%M:%SZ}"
    walk = fleet.Walk(RECORDS)
    bodies = [walk.body(start + timedelta(seconds=step)) for step in range(16)]
    fields = {"X-Api-Key": key, "Content-Type": "application/json"}
    series = f"/topology/series?entity_id={ENTITY}&start={since}&measurement=link&interval=1m"
    for body in itertools.cycle(bodies):
        yield "POST", "/telemetry", body, fields
        yield "GET", series, None, fields
        yield "GET", "/health", None, {"Connection": "close"}


class Healthy:
    def __init__(self, address: str, key: str) -> None:
        self._address = address
        self._connection = http.client.HTTPConnection(address, timeout=30)
        self._requests = requests(key)

    def ask(self) -> tuple[float, bool]:
        """Seconds until the last byte of one answer, and whether it was good."""
        method, path, body, fields = next(self._requests)
        start = time.perf_counter()
        wire = self._connection
        if "Connection" in fields:
            wire = http.client.HTTPConnection(self._address, timeout=30)
        try:
            wire.request(method, path, body=body, headers=fields)
            answer = wire.getresponse()
            answer.read()
            good = answer.status in {200, 202}
        except (OSError, http.client.HTTPException):
            good = False
            wire.close()
        if wire is not self._connection:
            wire.close()
        return time.perf_counter() - start, good

    def drive(self, seconds: float) -> dict:
        answers = []
        began = time.perf_counter()
        for turn in range(round(seconds / PERIOD_SECONDS)):
            time.sleep(max(began + turn * PERIOD_SECONDS - time.perf_counter(), 0))
            answers.append(self.ask())
            if time.perf_counter() > began + 2 * seconds:
                break
        latencies = [latency for latency, _ in answers]
        return {
            "requests": len(answers),
            "p50_seconds": statistics.median(latencies),
            "p99_seconds": statistics.quantiles(latencies, n=100)[98],
            "failed": sum(not good for _, good in answers),
        }


def main() -> None:
    healthy = Healthy(*sys.argv[1:])
    healthy.drive(1.0)
    answer_commands(lambda wish: healthy.drive(wish["seconds"]))


if __name__ == "__main__":
    main()
