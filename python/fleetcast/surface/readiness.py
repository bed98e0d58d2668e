"""Signs of life of the dependencies of a service. Each question asks them again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

Probe = Callable[[], None]
"""Asks a dependency for a sign of life. Any exception means that the dependency has failed."""

_THREADS = 4  # a probe that hangs keeps its thread; other probes must not wait for it

logger = logging.getLogger(__name__)


class Dependencies:
    """Probes by the name of the dependency, each run in a thread."""

    def __init__(self, probes: Mapping[str, Probe], threads: int = _THREADS) -> None:
        self._probes = probes
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="probe")

    def ask(self) -> dict[str, Future[None]]:
        """Asks all dependencies at once."""
        return {name: self._pool.submit(probe) for name, probe in self._probes.items()}


def well(asked: Mapping[str, Future[None]], seconds: float) -> dict[str, bool]:
    """Returns which dependencies answer in time. Only the log has the faults."""
    until = time.monotonic() + seconds
    return {name: _is_well(name, future, until) for name, future in asked.items()}


def _is_well(name: str, future: Future[None], until: float) -> bool:
    try:
        future.result(timeout=max(until - time.monotonic(), 0.0))
    except Exception as error:  # noqa: BLE001 - any exception means a fault
        future.cancel()
        logger.warning("dependency %s is not well: %r", name, error)
        return False
    return True
