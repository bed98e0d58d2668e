"""Remote write of a real Prometheus at a steady rate, and whether all of it arrived.

    python -m benches.service.remote_write [--seconds 600] [--targets 100] [--series 1000]

Prometheus (`PROMETHEUS=FILE`, or the one in PATH) scrapes each target every second, queues as it
does by default, and sends to the adapter listener of the real service. Then the targets are taken
away, and when nothing waits any more its count of samples is held against the values stored. Exits
with 1 where one was dropped, failed, or is missing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import polars as pl
from polars import selectors

from benches.harness.measure import cpu_seconds_of, with_children
from benches.harness.paths import TARGET
from fleetcast.bench.processes import free_port
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.integrations.programs import found
from tests.service.service import prepare, start
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

METRICS = 100
PAGES = 20
END_SECONDS = 4.0
QUEUE = "prometheus_remote_storage_"
LISTENER = ("--set", "adapters.address=127.0.0.1:0")
NAMES = '[[map]]\nfrom = "*"\nto = "telemetry"\nentity = "instance"\n'


def pages(series: int) -> list[bytes]:
    """Texts of a target, one for each scrape in turn: gauges of as many units as it takes."""
    dice = random.Random(7)
    names = [
        f'metric_{number % METRICS}{{unit="{number // METRICS}"}}'
        for number in sorted(range(series), key=lambda number: number % METRICS)
    ]
    return [
        "".join(f"{name} {dice.randrange(10_000) / 100}\n" for name in names).encode()
        for _ in range(PAGES)
    ]


@contextmanager
def targets(series: int) -> Iterator[int]:
    """A server whose every path is a target; its port."""
    texts = itertools.cycle(pages(series))

    class Exposition(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            text = next(texts)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Exposition) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def settings(address: str, key: str, port: int, count: int) -> str:
    """Prometheus's, as JSON, which is YAML as well; without a job where there are no targets."""
    jobs = [
        {
            "job_name": "fleet",
            "static_configs": [
                {
                    "targets": [f"127.0.0.1:{port}"],
                    "labels": {"instance": f"host-{number}", "__metrics_path__": f"/{number}"},
                }
                for number in range(count)
            ],
        }
    ]
    write = {"url": f"{address}/api/v1/write", "authorization": {"credentials": key}}
    document = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": jobs if count else [],
        "remote_write": [write],
    }
    return json.dumps(document)


def counted(port: int, start: str) -> dict[str, float]:
    """Sums of metrics over their labels, by the rest of their names."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    found: dict[str, float] = defaultdict(float)
    for line in lines:
        if line.startswith(start):
            name, _, value = line.removeprefix(start).rpartition(" ")
            found[name.partition("{")[0]] += float(value)
    return found


def stored_values(data: Path) -> int:
    """Numbers in all rows of the only tenant."""
    with opened(DataDirectory(data), os.environ) as installation:
        (tenant,) = installation.tenants.all()
        plane = installation.engine.plane(tenant.account_id, tenant.name)
        stream = plane.scan(0, 2**63 - 1)
        frames = (pl.DataFrame(batch).select(selectors.float()) for batch in stream)
        return sum(sum(frame.count().row(0)) for frame in frames if frame.width)


@contextmanager
def prometheus(program: str, folder: Path, text: str) -> Iterator[tuple[subprocess.Popen, int]]:
    """A running Prometheus, and its port."""
    (folder / "prometheus.yml").write_text(text)
    port = free_port()
    command = [program, f"--config.file={folder / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process, port
    finally:
        process.terminate()
        process.wait(60)


def measure(program: str, folder: Path, seconds: float, count: int, series: int) -> bool:
    """Prints what was sent and stored; true where that is the same."""
    data = folder / "data"
    key = prepare(data)
    (data / "adapters.toml").write_text(NAMES)
    service = start(data, key, "--admin", "127.0.0.1:0", *LISTENER)
    address = service.ready["adapters"]
    with targets(series) as exposed:
        running = prometheus(program, folder, settings(address, key, exposed, count))
        with running as (process, port):
            time.sleep(seconds)
            sent = counted(port, QUEUE)["samples_total"]
            ours = cpu_seconds_of(with_children(service.process.pid))
            theirs = cpu_seconds_of([process.pid])
            (folder / "prometheus.yml").write_text(settings(address, key, exposed, 0))
            process.send_signal(signal.SIGHUP)
            until(lambda: is_idle(port))
            queue = counted(port, QUEUE)
            admin = urlsplit(service.ready["admin"]).port
            stale = counted(admin, "fleetcast_records_")["rejected_total"]
    service.stop()
    stored = stored_values(data)
    print(f"{sent / seconds:>12,.0f}  samples sent per second, {seconds:.0f} s")
    print(f"{ours / seconds:>12.2f}  CPUs of the service; of Prometheus {theirs / seconds:.2f}")
    for name in ("total", "dropped_total", "failed_total", "retried_total"):
        print(f"{queue[f'samples_{name}']:>12,.0f}  samples, {name.removesuffix('_total')}")
    print(f"{stored:>12,}  values stored, and {stale:,.0f} marks that a series ended left out")
    lost = queue["samples_dropped_total"] + queue["samples_failed_total"]
    arrived = queue["samples_total"] - queue["samples_retried_total"]
    return lost == 0 and stored + stale == arrived


def is_idle(port: int) -> bool:
    """Nothing waits, and nothing was sent for longer than ended series take to be marked."""
    before = counted(port, QUEUE)
    time.sleep(END_SECONDS)
    after = counted(port, QUEUE)
    return after["samples_pending"] == 0 and after["samples_total"] == before["samples_total"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--series", type=int, default=1_000, help="of each target")
    options = parser.parse_args()
    program = found("prometheus")
    if program is None:
        raise SystemExit("no prometheus here, nor in PROMETHEUS")
    print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        good = measure(program, Path(folder), options.seconds, options.targets, options.series)
    raise SystemExit(int(not good))


if __name__ == "__main__":
    main()
