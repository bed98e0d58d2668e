"""Upkeep of usage: counts of requests go from shared memory to the control store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.composition.background import background

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from fleetcast.accounts import Usage

_ROUND_SECONDS = 1.0

logger = structlog.get_logger(__name__)


def storing_usage(usage: Usage) -> AbstractContextManager[None]:
    """Stores new counts once a second until the end of the block, and once more at the end.

    This process may end if the file of the control store is cut while it is read. The supervisor
    must not: its end is the end of the service. So the supervisor does not read the store.
    """

    def work(stopped: threading.Event) -> None:
        while not stopped.wait(_ROUND_SECONDS):
            _store(usage)
        _store(usage)

    return background("usage", work)


def _store(usage: Usage) -> None:
    try:
        usage.flush()
    except (ControlStoreUnavailable, OSError, ValueError) as error:
        logger.warning("usage is not stored", problem=str(error))
