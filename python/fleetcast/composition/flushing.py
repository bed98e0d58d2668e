"""Flushing in asynchronous mode: acknowledged batches become durable every few milliseconds.

Each tenant's batches are flushed on their own, several tenants at once. A round does not wait for
the flushes. A store whose disk hangs therefore holds one thread, and delays no other tenant's
records.

Example: with `ingest.flush_interval_ms = 100`, a power cut loses about the last 0.1 s of batches.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fleetcast.composition.background import attempt, background
from fleetcast.errors import StoreError
from fleetcast.metrics import sample

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from fleetcast.config.sections import Ingest
    from fleetcast.engine import Engine, Plane
    from fleetcast.metrics import Counters

_AT_ONCE = 8
_IDLE_SECONDS = 1.0  # delay in synchronous mode until a change of mode is noticed
_LOG_SECONDS = 10.0

logger = logging.getLogger(__name__)


class Flusher:
    """Flushes one engine from its own threads. `ingest` returns the settings in force."""

    def __init__(self, engine: Engine, ingest: Callable[[], Ingest], counters: Counters) -> None:
        self._planes = engine.open_planes
        self._ingest = ingest
        self._counters = counters
        self._gauge = counters.gauge(sample("fleetcast_ingest_buffer_bytes"))
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="flush")
        self._flushing: set[str] = set()
        self._logged_at = float("-inf")

    def running(self) -> AbstractContextManager[None]:
        """Flushes until the end of the block. Closing the engine flushes for the last time."""
        return background("flush", self._run)

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._seconds()):
            attempt("waiting batches were not flushed", self.begin)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def begin(self) -> None:
        """Starts a flush of each store that has waiting batches and is not being flushed."""
        waiting = self._planes.waiting()
        self._counters.put(self._gauge, sum(waiting_bytes for _, waiting_bytes in waiting.values()))
        for account_id, (plane, _) in waiting.items():
            if account_id not in self._flushing:
                self._flushing.add(account_id)
                self._pool.submit(self._flush, account_id, plane)

    def _flush(self, account_id: str, plane: Plane) -> None:
        try:
            self._planes.flush(account_id, plane)
        except StoreError as error:
            self._log(error)
        finally:
            self._flushing.discard(account_id)

    def _seconds(self) -> float:
        ingest = self._ingest()
        return ingest.flush_interval_ms / 1e3 if ingest.mode == "async" else _IDLE_SECONDS

    def _log(self, error: StoreError) -> None:
        now = time.monotonic()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            logger.error("acknowledged records are not durable: %s", error)
