"""How long a healthy client waits while others do what they can to hold the service.

    python -m benches.service.hostile [--seconds 10] [--connections 1000]

The real service with two workers. The healthy client writes 100 records, reads a series and opens
a connection for a probe, a hundred requests a second, in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benches.harness.child import Child, module
from benches.harness.paths import TARGET
from benches.inputs import fleet
from tests.service.hostile import ATTACKS, FORMS, holding, refusal_of
from tests.service.service import Service, prepare, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TICK_SECONDS = 0.25
READERS = 50  # each answer is several megabytes
WIDE_ENTITIES = 20_000
STORM = "refused forms, as fast as they are answered"


@contextmanager
def repeating(work: Callable[[], object], every_seconds: float) -> Iterator[None]:
    """Does something over and over meanwhile, in a thread."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every_seconds):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def attack(service: Service, name: str, connections: int) -> Iterator[Callable[[], str]]:
    """One attack under way; tells at its end what it still holds."""
    if name == STORM:
        refused = [0]

        def storm() -> None:
            for form, expected in FORMS.values():
                assert refusal_of(service, form, service.key) == expected
                refused[0] += 1

        with repeating(storm, 0):
            yield lambda: f"{refused[0]:,} refused"
        return
    count = READERS if "readers" in name else connections
    with holding(service, name, count) as held:
        keep_on = held.sip if "readers" in name else held.trickle if "slow" in name else bool
        with repeating(keep_on, TICK_SECONDS):
            yield lambda: f"{held.open_count():,} of {count:,} held"


def load(service: Service) -> None:
    """Many entities, so that one answer is large."""
    for body in fleet.wide_bodies(WIDE_ENTITIES):
        at = b'"time":"2026-03-01'
        assert service.post(body.replace(at, b'"time":"2100-03-01')).status == 202


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase")
    parser.add_argument("--connections", type=int, default=1_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        data = Path(folder) / "data"
        service = start(data, prepare(data), "--workers", "2")
        load(service)
        client = Child(module("benches.service.healthy", service.address, service.key))
        print(f"load before the run {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
        print(row(["attack", "p50 before", "p99 before", "p50", "p99", "failed", "at its end"]))
        print(row(["---"] * 7))
        for name in (*ATTACKS, STORM):
            before = client.ask(seconds=arguments.seconds)
            with attack(service, name, arguments.connections) as tell:
                during = client.ask(seconds=arguments.seconds)
                held = tell()
            times = [d[p] for d in (before, during) for p in ("p50_seconds", "p99_seconds")]
            failed = f"{during['failed']} of {during['requests']:,}"
            cells = [name, *(f"{time * 1e3:.2f} ms" for time in times), failed, held]
            print(row(cells), flush=True)
        good = sum(
            refusal_of(service, form, service.key) == expected for form, expected in FORMS.values()
        )
        print(f"refused with the contract's JSON: {good} of {len(FORMS)}")
        client.close()
        service.stop()


if __name__ == "__main__":
    main()
