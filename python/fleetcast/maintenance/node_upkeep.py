"""Upkeep that the nodes of an installation share: signs of life, and removal of old records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from fleetcast.composition.background import background
from fleetcast.errors import OperatorError, StoreDamaged, StoreError
from fleetcast.metrics import sample

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Counters

_BEAT_SECONDS = 3.0  # a node counts as gone after ten seconds
_SWEEP_SECONDS = 60.0

logger = structlog.get_logger(__name__)


def node_upkeep(stores: Stores, counters: Counters) -> AbstractContextManager[None]:
    """Beats and sweeps until the end of the block, if many nodes share the stores.

    Shows the state of the shared stores in the gauges that `Stores.gauges` names.
    """

    def show() -> None:
        for name, value in stores.gauges().items():
            counters.put(counters.gauge(sample(name)), value)

    def work(stopped: threading.Event) -> None:
        swept_at = float("-inf")
        while stores.is_shared and not stopped.wait(_BEAT_SECONDS):
            _attempt("this node gives no sign of life", stores.beat)
            if time.monotonic() - swept_at >= _SWEEP_SECONDS:
                swept_at = time.monotonic()
                _attempt("the log is not swept", stores.sweep)
                _attempt("the shared stores are not measured", show)

    return background("node", work)


def _attempt(failure: str, do: Callable[[], None]) -> None:
    try:
        do()
    except StoreDamaged as error:
        logger.error(failure, problem=str(error))  # noqa: TRY400 - the message says all
    except (StoreError, OperatorError) as error:
        logger.warning(failure, problem=str(error))
    except BaseException:  # a panic of the engine is no Exception, and must not end the upkeep
        logger.exception(failure)
