"""Repeats in the service's log, once a second, the audit lines that commands wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.composition.background import background

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from fleetcast.installation.stores import Follower

_ROUND_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0

logger = structlog.get_logger(__name__)


def repeating_audit_lines(follower: Follower) -> AbstractContextManager[None]:
    """Repeats lines until the end of the block, and once more at the end.

    A thread does so, because a disk that hangs must not delay the restart of children.
    """

    def work(stopped: threading.Event) -> None:
        while not stopped.wait(_ROUND_SECONDS):
            _follow(follower)
        _follow(follower)

    return background("audit", work, patience_seconds=_PATIENCE_SECONDS)


def _follow(follower: Follower) -> None:
    try:
        follower.follow()
    except (ControlStoreUnavailable, OSError, ValueError) as error:
        logger.warning("audit lines are not repeated", problem=str(error))
