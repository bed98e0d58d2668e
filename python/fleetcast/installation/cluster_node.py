"""One node among those that share an installation: its id, its clock, the planes it prefers."""

from __future__ import annotations

import socket
import time
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from fleetcast.errors import OperatorError, StoreUnavailable

if TYPE_CHECKING:
    from fleetcast.engine import Cluster
    from fleetcast.installation.directory import DataDirectory

ALIVE_SECONDS = 10.0
"""Time since its last beat for which a node counts as alive, as the database has it, too."""
_CLAIM_SECONDS = ALIVE_SECONDS + 1.0
_RETRY_SECONDS = 0.5
_CLOCK_WARNING_SECONDS = 0.5
CLOCK_SECONDS_MAX = 5.0
"""Greatest difference to the database's clock: a fast one would push all readers' instant ahead."""
_WARNING_SECONDS = 60.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")

logger = structlog.get_logger(__name__)


class ClusterNode:
    """This node. Copies of a data directory have one id, and are told apart by where they lie."""

    def __init__(self, cluster: Cluster, directory: DataDirectory) -> None:
        self._cluster = cluster
        self._directory = directory
        self._alive: list[str] = []
        self._warned_at = float("-inf")

    def claim(self) -> None:
        """Takes the node's id, as nobody else serves by it.

        One that died elsewhere is waited for. Raises `OperatorError` for one that goes on,
        `StoreError`.
        """
        until = time.monotonic() + _CLAIM_SECONDS
        while not self._noted():
            if time.monotonic() >= until:
                message = (
                    f"another process serves as this node: {self._directory.root} is a copy of its"
                    " data directory; make a node of its own with fleetcast init"
                )
                raise OperatorError(message)
            time.sleep(_RETRY_SECONDS)

    def beat(self) -> None:
        """Notes that this node serves, and which others do.

        Raises `StoreError`, and `OperatorError` where another process serves as this node.
        """
        if not self._noted():
            message = f"another process serves as this node, by a copy of {self._directory.root}"
            raise OperatorError(message)
        nodes = self._cluster.nodes()
        self._alive = [node for node, _, _, silent in nodes if silent < ALIVE_SECONDS]
        ahead, _ = self._look()
        if abs(ahead) > _CLOCK_WARNING_SECONDS and self._is_warning_due():
            logger.warning("the clock differs from the database's", ahead_seconds=round(ahead, 3))

    def check(self) -> None:
        """Fails where this node must not serve: its clock is off, or another one has its id.

        Raises `StoreError`, `OperatorError`.
        """
        ahead, place = self._look()
        if abs(ahead) > CLOCK_SECONDS_MAX:
            side = "ahead of" if ahead > 0 else "behind"
            message = f"the clock of this node is {abs(ahead):.1f} s {side} the database's: set it"
            raise StoreUnavailable(message)
        if place not in {None, self._place()}:
            message = f"another process serves as this node, by a copy of {self._directory.root}"
            raise StoreUnavailable(message)

    def prefers(self, account_id: str) -> bool:
        """True where this node comes first for the account's plane, of all that are alive.

        Each draws a number for it (rendezvous hashing), so one that comes or goes changes the
        preference for its own planes alone.
        """
        own = self._directory.node_id()
        numbers = {node: sha256(f"{node} {account_id}".encode()).digest() for node in self._alive}
        return own not in numbers or max(numbers, key=numbers.__getitem__) == own

    def _noted(self) -> bool:
        names = socket.gethostname(), version("fleetcast")
        return self._cluster.beat(self._directory.node_id(), self._place(), *names)

    def _look(self) -> tuple[float, str | None]:
        """Seconds that the clock is ahead of the database's for sure, and where the node serves."""
        before = time.time()
        now_us, place = self._cluster.look(self._directory.node_id())
        after, now = time.time(), now_us / 1e6
        return max(before - now, 0.0) + min(after - now, 0.0), place

    def _place(self) -> str:
        """Name of the file of the id on all machines since they were started."""
        status = self._directory.node.stat()
        return f"{_BOOT.read_text().strip()}/{status.st_dev}/{status.st_ino}"

    def _is_warning_due(self) -> bool:
        now = time.monotonic()
        is_due = now - self._warned_at >= _WARNING_SECONDS
        if is_due:
            self._warned_at = now
        return is_due
