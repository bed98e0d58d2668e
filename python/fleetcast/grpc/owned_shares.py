"""Bounds on all that is under way at once, in total and for one owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import Share
from fleetcast.errors import Refused
from fleetcast.metrics import label

if TYPE_CHECKING:
    from fleetcast.metrics import Counters


class OverShare(Refused):
    """`ingest_buffer_full`: the owner holds as much as it may."""

    def __init__(self) -> None:
        super().__init__("ingest_buffer_full", {})


class OwnedShares:
    """Refuses an amount beyond its owner's share, before it has cost anything, and counts that."""

    def __init__(self, counters: Counters) -> None:
        share = Share()
        self._take = share.take
        self.give = share.give
        """Gives back what `enter` took."""
        self._counters = counters
        self._refused = counters.counter(
            label("fleetcast_refused_over_share_total", surface="grpc")
        )

    def enter(self, owner: str, amount: int, bound: int) -> None:
        """Takes a part of `bound`, which `give` gives back. Raises `OverShare`."""
        if not self._take(owner, amount, bound):
            self._counters.add(self._refused)
            raise OverShare
