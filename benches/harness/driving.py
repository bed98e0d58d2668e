"""Common part of the clients in processes of their own: commands on stdin, clients in threads."""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Client(Protocol):
    latencies: list[float]
    """Seconds, of every request of the last `run`."""

    def run(self, until: float) -> None:
        """Asks over and over until that instant of `time.perf_counter`."""


def answer_commands(work: Callable[[dict], dict]) -> None:
    """A line on stdout when ready, then one for each line on stdin, all of them JSON."""
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(work(json.loads(line))), flush=True)


def driven(clients: Sequence[Client], seconds: float) -> dict:
    """Requests, wall and CPU seconds, and median latency of clients that run at the same time."""
    cpu, start = time.process_time(), time.perf_counter()
    until = start + seconds
    threads = [threading.Thread(target=client.run, args=(until,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies = [latency for client in clients for latency in client.latencies]
    return {
        "requests": len(latencies),
        "seconds": time.perf_counter() - start,
        "client_cpu_seconds": time.process_time() - cpu,
        "p50_seconds": statistics.median(latencies),
    }
