"""The last minutes of some counters, so that the console's first page already has rates."""

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
    """Sums of counters, taken every `step_seconds` and kept for the last `moments_max` moments.

    `totals` returns all sums, none of which ever falls.

    Example: 91 moments span 90 steps of 10 s, which is 15 minutes.
    """

    def __init__(
        self,
        totals: Callable[[], Mapping[str, int]],
        moments_max: int,
        clock: Callable[[], float] = time.monotonic,
        step_seconds: float = STEP_SECONDS,
    ) -> None:
        self.step_seconds = step_seconds
        self._totals = totals
        self._clock = clock
        self._lock = threading.Lock()
        self._moments: deque[_Moment] = deque(maxlen=moments_max)
        self.look()

    def look(self) -> None:
        """Adds the present moment, if the last moment is a step old."""
        with self._lock:
            now = self._clock()
            if not self._moments or now - self._moments[-1].at >= self.step_seconds:
                self._moments.append(_Moment(now, self._totals()))

    def since(self, seconds: float) -> tuple[float, Mapping[str, int], Mapping[str, int]]:
        """Returns the age of the oldest moment within `seconds`, its sums, and the present sums."""
        now, totals = self._clock(), self._totals()
        with self._lock:
            moments = list(self._moments)
        within = (moment for moment in moments if now - moment.at <= seconds)
        first = next(within, moments[-1])
        return max(now - first.at, 0.0), first.totals, totals

    def steps(self, name: str) -> list[int]:
        """Returns the growth of a counter from moment to moment, oldest first."""
        with self._lock:
            values = [moment.totals.get(name, 0) for moment in self._moments]
        return [after - before for before, after in pairwise(values)]
