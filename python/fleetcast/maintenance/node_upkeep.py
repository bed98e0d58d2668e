"""Upkeep that the nodes of an installation share: signs of life, and removal of old records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetcast.composition.background import attempt, background
from fleetcast.metrics import sample

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Counters

_BEAT_SECONDS = 3.0  # a node counts as gone after ten seconds
_SWEEP_SECONDS = 60.0


def node_upkeep(stores: Stores, counters: Counters) -> AbstractContextManager[None]:
    """Beats and sweeps until the end of the block, if many nodes share the stores.

    Shows the state of the shared stores in the gauges that `ClusterStores.gauges` names.
    """

    def show() -> None:
        for name, value in stores.gauges().items():
            counters.put(counters.gauge(sample(name)), value)

    def work(stopped: threading.Event) -> None:
        swept_at = float("-inf")
        while stores.is_shared and not stopped.wait(_BEAT_SECONDS):
            attempt("this node gives no sign of life", stores.beat)
            if time.monotonic() - swept_at >= _SWEEP_SECONDS:
                swept_at = time.monotonic()
                attempt("the log is not swept", stores.sweep)
                attempt("the shared stores are not measured", show)

    return background("node", work)
