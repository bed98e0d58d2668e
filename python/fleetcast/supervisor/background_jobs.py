"""Background jobs of the supervisor, once a second: store usage, repeat audit lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.composition.background import background
from fleetcast.metrics import AccountRequests

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Shared

_ROUND_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0

logger = structlog.get_logger(__name__)


def background_jobs(stores: Stores, shared: Shared, run: str) -> AbstractContextManager[None]:
    """Does the jobs until the end of the block, and once more at the end.

    The jobs have a thread, so that a disk that hangs does not delay the restart of children.
    """
    usage = stores.usage(AccountRequests(shared), run)
    follower = stores.follower()

    def do() -> None:
        try:
            follower.follow()
            usage.flush()
        except (ControlStoreUnavailable, OSError, ValueError) as error:
            logger.warning("chore failed", problem=str(error))

    def work(stopped: threading.Event) -> None:
        while not stopped.wait(_ROUND_SECONDS):
            do()
        do()

    return background("jobs", work, patience_seconds=_PATIENCE_SECONDS)
