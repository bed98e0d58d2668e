"""Batches over several connections at once. Each waits for an answer before its next batch."""

from __future__ import annotations

import threading
import time
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
) -> Loaded:
    """Sends all batches; `answered` is called with the number of batches acknowledged so far.

    A connection that fails sends no more batches.

    Example: with 4 connections, the first connection sends the batches 0, 4, 8, ….
    """
    result, lock = Loaded(), threading.Lock()
    barrier = threading.Barrier(connections + 1)

    def send(share: int, session: Session) -> None:
        barrier.wait()
        try:
            for index in range(share, len(payloads), connections):
                with lock:
                    result.begun.append(index)
                before = time.perf_counter()
                session.write(payloads[index])
                spent = time.perf_counter() - before
                with lock:
                    result.acknowledged.append(index)
                    result.latencies.append(spent)
                    answered(len(result.acknowledged))
        except Exception as error:  # noqa: BLE001 - each library has its own
            result.faults.append(fault_of(error))
        finally:
            session.close()

    sessions = [driver.connect() for _ in range(connections)]
    threads = [threading.Thread(target=send, args=each) for each in enumerate(sessions)]
    for thread in threads:
        thread.start()
    barrier.wait()
    before = time.perf_counter()
    for thread in threads:
        thread.join()
    result.seconds = time.perf_counter() - before
    return result
