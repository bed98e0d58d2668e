"""Watch of the children: how often they fail, and if they work.

A process can live and do no work. Example: its loop waits for a lock for ever. Each child sends a
sign of life from its working loop. A child without a sign for `service.watchdog_seconds` is killed,
and started again like any child that ends.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from fleetcast.metrics import sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.metrics import Counters
    from fleetcast.supervisor.process import Process

_LOOK_SECONDS_MAX = 1.0
"""Most that one look adds to a child's silence, even if the supervisor was stopped for longer."""
_UNREADY_SHARE = 0.5
"""Part of `service.watchdog_seconds` after which `/readyz` reports a child as silent."""

logger = logging.getLogger(__name__)


class Watchdog:
    """Ends silent children. With `watchdog_seconds` of 0 it ends no child.

    Example: 0 keeps a child alive while a debugger holds it.
    """

    def __init__(
        self, processes: Sequence[Process], counters: Counters, watchdog_seconds: float
    ) -> None:
        self._processes = processes
        self._counters = counters
        self._watchdog_seconds = watchdog_seconds
        self._looked_at = time.monotonic()
        names = {process.spec.name for process in processes}
        self._failures = {name: self._gauge("fleetcast_child_failures", name) for name in names}
        self._silent = {name: self._gauge("fleetcast_child_silent", name) for name in names}

    def look(self) -> bool:
        """Takes the signs of life that have come, and kills children that are silent.

        Returns true if `/readyz` would report no child as silent.
        """
        now = time.monotonic()
        seconds, self._looked_at = min(now - self._looked_at, _LOOK_SECONDS_MAX), now
        for process in self._processes:
            process.look(seconds)
            if 0 < self._watchdog_seconds < process.silent_seconds and not process.gone():
                logger.error(
                    "child does not work and is killed", extra={"child": process.spec.name}
                )
                process.kill()
        for name in self._failures:
            of_name = [process for process in self._processes if process.spec.name == name]
            self._counters.put(self._failures[name], sum(each.failures for each in of_name))
            self._counters.put(self._silent[name], sum(map(self._is_silent, of_name)))
        return not any(map(self._is_silent, self._processes))

    def _is_silent(self, process: Process) -> bool:
        return 0 < _UNREADY_SHARE * self._watchdog_seconds < process.silent_seconds

    def _gauge(self, family: str, name: str) -> int:
        return self._counters.gauge(sample(family, child=name))
