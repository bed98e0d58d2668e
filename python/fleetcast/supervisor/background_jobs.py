"""What the supervisor does on the side, once a second: usage becomes durable, changes are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from fleetcast.accounts import ControlStoreUnavailable, Usage
from fleetcast.composition.background import background
from fleetcast.installation.audit_log import Follower
from fleetcast.metrics import AccountRequests

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from fleetcast.accounts import ControlStore
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.metrics import Shared

_EVERY_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0

logger = structlog.get_logger(__name__)


class Chores:
    """A thread of its own, so that a disk that hangs keeps nobody from restarting children."""

    def __init__(
        self, directory: DataDirectory, store: ControlStore, shared: Shared, run: str
    ) -> None:
        self._usage = Usage(store, AccountRequests(shared), run)
        self._follower = Follower(directory.audit_log)

    def running(self) -> AbstractContextManager[None]:
        """Does them until the end of the block, and once more then."""
        return background("chores", self._run, patience_seconds=_PATIENCE_SECONDS)

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(_EVERY_SECONDS):
            self._once()
        self._once()

    def _once(self) -> None:
        try:
            self._follower.follow()
            self._usage.flush()
        except (ControlStoreUnavailable, OSError, ValueError) as error:
            logger.warning("chore failed", problem=str(error))
