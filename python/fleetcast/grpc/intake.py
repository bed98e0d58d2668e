"""How much may be under way at once, in all and for one owner (L19, F10, N6)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.errors import refused
from fleetcast.metrics import label
from fleetcast.shares import Share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.metrics import Counters


class Intake:
    """Counts something by owner against a bound. Safe to share between threads.

    What is turned away is told to come back, before it has cost anything.
    """

    def __init__(self, counters: Counters) -> None:
        self._share = Share()
        self._counters = counters
        self._refused = counters.counter(
            label("fleetcast_refused_over_share_total", surface="grpc")
        )

    def enter(self, owner: str, amount: int, most: int) -> None:
        """Takes a part of `most`. Raises `Refused` (`ingest_buffer_full`)."""
        if not self._share.take(owner, amount, most):
            self._counters.add(self._refused)
            raise refused("ingest_buffer_full")

    def leave(self, owner: str, amount: int) -> None:
        """Gives it back."""
        self._share.give(owner, amount)

    @contextmanager
    def one(self, owner: str, most: int) -> Iterator[None]:
        """One of `most` as long as the block lasts. Raises `Refused` (`ingest_buffer_full`)."""
        self.enter(owner, 1, most)
        try:
            yield
        finally:
            self.leave(owner, 1)
