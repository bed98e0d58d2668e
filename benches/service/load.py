"""Mixed writes and reads at full speed while a worker is killed every ten seconds.

    python -m benches.service.load [--seconds 60] [--kill-every 10]

The real service with two workers and its limits off. Exits with 1 where anything acknowledged is
lost, anything but 200 and 202 was answered, or a connection broke without a kill.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from benches.harness.paths import TARGET
from tests.service.load import RECORDS, kill_a_worker, load, verdict
from tests.service.service import prepare, start

HISTORY = ("--set", "limits.history_horizon_days=3650")
MUST_BE_ZERO = (
    "of them lost",
    "of them stored twice",
    "answers other than 200 and 202",
    "of them not within a second of a kill",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kill-every", type=float, default=10.0, metavar="SECONDS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        data = Path(folder) / "data"
        service = start(data, prepare(data), "--workers", "2", *HISTORY)
        print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
        kills: list[float] = []
        began = time.monotonic()
        with load(service) as clients:
            until = began + arguments.kill_every
            while until < began + arguments.seconds:
                time.sleep(until - time.monotonic())
                kills.append(kill_a_worker(service, len(kills)))
                until += arguments.kill_every
            time.sleep(max(began + arguments.seconds - time.monotonic(), 0))
        seconds = time.monotonic() - began
        counts = verdict(service, clients, kills)
        service.stop()
    for name, count in counts.items():
        print(f"{count:>9,}  {name}")
    rate = counts["batches acknowledged"] * RECORDS / seconds
    print(f"{rate:>9,.0f}  records acknowledged per second, clients on the same cores")
    wrong = any(counts[name] for name in MUST_BE_ZERO)
    same = counts["records stored"] == counts["records that these batches have"]
    raise SystemExit(int(wrong or not same))


if __name__ == "__main__":
    main()
