"""Batches over several connections at once, as fast as they are answered or at a rate."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.bench.faults import fault_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast.bench.driver import Driver, Session


@dataclass
class Loaded:
    """Fate of each batch, by its index."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def load(
    driver: Driver,
    payloads: Sequence[object],
    connections: int,
    answered: Callable[[int], object] = lambda _count: None,
    *,
    batches_per_second: float | None = None,
) -> Loaded:
    """Sends all batches; `answered` is called with the number of batches acknowledged so far.

    Each connection waits for an answer before its next batch. With `batches_per_second` every batch
    has a time at which it is due. It is sent then, or later if the answer before is late. Latency
    counts from the due time, so it includes that delay. A connection that fails sends no more
    batches. Raises the errors of `answered`.

    Example: with 4 connections, the first connection sends the batches 0, 4, 8, …. At a rate of 2
    these are due after 0, 2 and 4 seconds.
    """
    result, lock = Loaded(), threading.Lock()
    barrier = threading.Barrier(connections + 1)

    def send(share: int, session: Session) -> None:
        barrier.wait()
        begin = time.perf_counter()
        with closing(session):
            for index in range(share, len(payloads), connections):
                before = _due(begin, index, batches_per_second)
                with lock:
                    result.begun.append(index)
                try:
                    session.write(payloads[index])
                except Exception as error:  # noqa: BLE001 - each library has its own
                    result.faults.append(fault_of(error))
                    return
                spent = time.perf_counter() - before
                with lock:
                    result.acknowledged.append(index)
                    result.latencies.append(spent)
                    answered(len(result.acknowledged))

    sessions = [driver.connect() for _ in range(connections)]
    threads = ThreadPoolExecutor(connections)
    sent = [threads.submit(send, *each) for each in enumerate(sessions)]
    threads.shutdown(wait=False)  # an error or Ctrl-C does not wait for the other connections
    barrier.wait()
    before = time.perf_counter()
    for each in sent:
        each.result()
    result.seconds = time.perf_counter() - before
    return result


def _due(begin: float, index: int, batches_per_second: float | None) -> float:
    """Waits until a batch is due and returns that time; without a rate it is due now."""
    now = time.perf_counter()
    if batches_per_second is None:
        return now
    due = begin + index / batches_per_second
    time.sleep(max(due - now, 0))
    return due
