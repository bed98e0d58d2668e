"""Asynchronous mode: what was acknowledged early becomes durable every few milliseconds."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError
from fleetcast.metrics import sample
from fleetcast.wiring.background import background

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from fleetcast.config.sections import Ingest
    from fleetcast.engine import Engine
    from fleetcast.metrics import Counters

_IDLE_SECONDS = 1.0  # in synchronous mode: how late a change of mode is noticed
_LOG_SECONDS = 10.0

logger = logging.getLogger(__name__)


class Flusher:
    """Flushes one engine from a thread of its own. `ingest` gives the settings as they are now."""

    def __init__(self, engine: Engine, ingest: Callable[[], Ingest], counters: Counters) -> None:
        self._engine = engine
        self._ingest = ingest
        self._counters = counters
        self._gauge = counters.gauge(sample("fleetcast_ingest_buffer_bytes"))
        self._logged_at = float("-inf")

    def running(self) -> AbstractContextManager[None]:
        """Flushes until the end of the block; closing the engine does it for the last time."""
        return background("flush", self._run)

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._seconds()):
            self._counters.put(self._gauge, self._engine.buffered_bytes())
            try:
                self._engine.flush()
            except StoreError as error:
                self._log(error)

    def _seconds(self) -> float:
        ingest = self._ingest()
        return ingest.flush_interval_ms / 1e3 if ingest.mode == "async" else _IDLE_SECONDS

    def _log(self, error: StoreError) -> None:
        now = time.monotonic()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            logger.error("acknowledged records are not durable: %s", error)
