"""A thousand ground stations: one warm channel each, one batch a second on each.

    python -m benches.service.channels [--stations 1000] [--seconds 60] [--records 100]
        [--processes 1]

First for that long in peace; then again, while the whole service is killed with -9 and started
anew. Exits with 1 where anything acknowledged is lost. `--processes` is `grpc.processes`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benches.harness.child import Child, module
from benches.harness.measure import cpu_seconds_of
from benches.harness.paths import TARGET
from benches.inputs import fleet
from tests.service.service import Service, prepare, start

HISTORY = ("--set", "limits.history_horizon_days=3650", "--set", "limits.raw_span_seconds=86400")
ENTITIES = 16
REASONS = 5


def started_stations(service: Service, stations: int, records: int) -> Child:
    ready = service.ready
    arguments = [ready["grpc"], ready["grpc_ca"], service.key, str(stations), str(records)]
    return Child(module("benches.service.stations", *arguments))


def lost(service: Service, acknowledged: dict[str, int]) -> int:
    """Batches that were acknowledged and are not there."""
    missing = 0
    names = list(acknowledged)
    for first in range(0, len(names), ENTITIES):
        asked = names[first : first + ENTITIES]
        found: dict[str, set[float]] = {name: set() for name in asked}
        page = f"{fleet.START:%Y-%m-%dT%H:%M:%SZ}"
        while page is not None:
            answer = service.get(
                "/topology/series",
                entity_id=asked,
                start=page,
                end=f"{fleet.START:%Y-%m-%d}T23:00:00Z",
                measurement="link",
                fields="number",
            )
            assert answer.status == 200, answer.body
            for series in answer.json["series"]:
                found[series["entity_id"]] |= set(series["channels"].get("number", []))
            page = answer.json["next_start"]
        missing += sum(len(set(range(acknowledged[name])) - found[name]) for name in asked)
    return missing


def report(name: str, answer: dict, server_cpu_seconds: float | None, seconds: float) -> None:
    cpu = ""
    if server_cpu_seconds is not None:
        each = server_cpu_seconds / answer["calls"] * 1e3
        cpu = f", server {server_cpu_seconds / seconds:.2f} CPUs, {each:.2f} ms a batch"
    again = sum(answer["resent"].values())
    print(
        f"{name}: {answer['calls']:,} batches acknowledged, p50 {answer['p50_seconds'] * 1e3:.1f} "
        f"ms, p99 {answer['p99_seconds'] * 1e3:.1f} ms{cpu}, stations "
        f"{answer['client_cpu_seconds'] / seconds:.2f} CPUs; {again:,} sent again by "
        f"{answer['stations that resumed']:,} stations",
        flush=True,
    )
    for reason, count in sorted(answer["resent"].items(), key=lambda item: -item[1])[:REASONS]:
        print(f"  {count:,} times because of {reason}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stations", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    seconds = arguments.seconds
    options = (*HISTORY, "--set", f"grpc.processes={arguments.processes}")
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        data = Path(folder) / "data"
        service = start(data, prepare(data), "--grpc", "127.0.0.1:0", *options)
        print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
        stations = started_stations(service, arguments.stations, arguments.records)
        before = cpu_seconds_of(service.processes())
        stations.tell(seconds=seconds)
        answer = stations.answer()
        cpu_seconds = cpu_seconds_of(service.processes()) - before
        report("in peace", answer, cpu_seconds, seconds)
        missing = lost(service, answer["acknowledged"])
        print(f"acknowledged and lost: {missing}")
        stations.tell(seconds=seconds)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(stations.answer)
            time.sleep(seconds / 3)
            service.kill()
            address = service.ready["grpc"]
            service = start(data, service.key, "--grpc", address, *options)
            answer = waiting.result()
        report("killed with -9 and started anew", answer, None, seconds)
        missing += lost(service, answer["acknowledged"])
        print(f"acknowledged and lost: {missing}")
        stations.close()
        service.stop()
    raise SystemExit(int(missing > 0))


if __name__ == "__main__":
    main()
