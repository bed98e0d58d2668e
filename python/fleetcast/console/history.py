"""The last minutes of some counters, so that a rate is known as soon as somebody looks."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STEP_SECONDS = 10.0


class _Moment(NamedTuple):
    at: float
    totals: Mapping[str, int]


class History:
    """Sums of counters as they were every ten seconds, at most `moments_max` times.

    `totals` gives all of them, each a number that never falls.
    """

    def __init__(
        self,
        totals: Callable[[], Mapping[str, int]],
        moments_max: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._totals = totals
        self._clock = clock
        self._lock = threading.Lock()
        self._moments: deque[_Moment] = deque(maxlen=moments_max)
        self.look()

    def look(self) -> None:
        """Adds the present moment, if the last one is ten seconds old."""
        with self._lock:
            now = self._clock()
            if not self._moments or now - self._moments[-1].at >= STEP_SECONDS:
                self._moments.append(_Moment(now, self._totals()))

    def since(self, seconds: float) -> tuple[float, Mapping[str, int], Mapping[str, int]]:
        """Seconds that the oldest moment within `seconds` is ago, its sums, and those of now."""
        now, totals = self._clock(), self._totals()
        with self._lock:
            moments = list(self._moments)
        within = (moment for moment in moments if now - moment.at <= seconds)
        first = next(within, moments[-1])
        return max(now - first.at, 0.0), first.totals, totals

    def steps(self, name: str) -> list[int]:
        """Growth of a counter from moment to moment, the oldest first."""
        with self._lock:
            values = [moment.totals.get(name, 0) for moment in self._moments]
        return [after - before for before, after in pairwise(values)]
