"""Bounds on all that is under way at once, in total and for one owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.errors import Refused
from fleetcast.metrics import label
from fleetcast.surface.shares import Share

if TYPE_CHECKING:
    from fleetcast.metrics import Counters


class OverShare(Refused):
    """`ingest_buffer_full`: the owner holds as much as it may."""

    def __init__(self) -> None:
        super().__init__("ingest_buffer_full", {})


class Admission:
    """Counts something by owner against a bound. Safe to share between threads.

    A call beyond the bound is refused before it has cost anything, and may come back.
    """

    def __init__(self, counters: Counters) -> None:
        self._share = Share()
        self._counters = counters
        self._refused = counters.counter(
            label("fleetcast_refused_over_share_total", surface="grpc")
        )

    def enter(self, owner: str, amount: int, bound: int) -> None:
        """Takes a part of `bound`. Raises `OverShare`."""
        if not self._share.take(owner, amount, bound):
            self._counters.add(self._refused)
            raise OverShare

    def leave(self, owner: str, amount: int) -> None:
        """Gives it back."""
        self._share.give(owner, amount)
