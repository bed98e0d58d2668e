"""One node among the nodes of an installation: its id, its clock, the planes it prefers."""

from __future__ import annotations

import logging
import socket
import time
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError, StoreUnavailable

if TYPE_CHECKING:
    from fleetcast.engine import Cluster
    from fleetcast.installation.directory import DataDirectory

ALIVE_SECONDS = 10.0
"""Seconds for which a node counts as alive after a beat; the database has the same number."""
_TAKE_SECONDS = ALIVE_SECONDS + 1.0
_RETRY_SECONDS = 0.5
_CLOCK_WARNING_SECONDS = 0.5
CLOCK_SECONDS_MAX = 5.0
"""Most seconds between this clock and the database's.

A fast clock would push the time of all readers ahead.
"""
_WARNING_SECONDS = 60.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")

logger = logging.getLogger(__name__)


class ClusterNode:
    """This node. Copies of a data directory share an id, and differ in the place of their files."""

    def __init__(self, cluster: Cluster, directory: DataDirectory) -> None:
        self._cluster = cluster
        self._directory = directory
        self._alive: list[str] = []
        self._warned_at = float("-inf")

    def take_node_id(self) -> None:
        """Takes the node's id, if no other process serves with it.

        Waits for an id whose process has died. Raises `StoreError`, and `OperatorError` if another
        process goes on with the id.
        """
        until = time.monotonic() + _TAKE_SECONDS
        while not self._noted():
            if time.monotonic() >= until:
                message = (
                    f"another process serves as this node: {self._directory.root} is a copy of its"
                    " data directory; make a node of its own with fleetcast init"
                )
                raise OperatorError(message)
            time.sleep(_RETRY_SECONDS)

    def beat(self) -> None:
        """Notes that this node serves, and learns which other nodes do.

        Raises `StoreError`, and `OperatorError` if another process serves as this node.
        """
        if not self._noted():
            message = f"another process serves as this node, by a copy of {self._directory.root}"
            raise OperatorError(message)
        nodes = self._cluster.nodes()
        self._alive = [node for node, _, _, silent in nodes if silent < ALIVE_SECONDS]
        ahead, _ = self._look()
        now = time.monotonic()
        is_warning_due = now - self._warned_at >= _WARNING_SECONDS
        if abs(ahead) > _CLOCK_WARNING_SECONDS and is_warning_due:
            self._warned_at = now
            logger.warning(
                "the clock differs from the database's", extra={"ahead_seconds": round(ahead, 3)}
            )

    def check(self) -> None:
        """Raises if this node must not serve: its clock is off, or another process has its id.

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
        """Returns true if this node comes first for the account's plane among the nodes alive.

        Each node gets a number for each account (rendezvous hashing), and the greatest number comes
        first. A node that comes or goes changes the preference for its own planes only.

        Example: if one of three nodes ends, the others take over its planes and keep their own.
        """
        own = self._directory.node_id()
        numbers = {node: sha256(f"{node} {account_id}".encode()).digest() for node in self._alive}
        return own not in numbers or max(numbers, key=numbers.__getitem__) == own

    def _noted(self) -> bool:
        names = socket.gethostname(), version("fleetcast")
        return self._cluster.beat(self._directory.node_id(), self._place(), *names)

    def _look(self) -> tuple[float, str | None]:
        """Returns the seconds that the clock is ahead for sure, and the node's place."""
        before = time.time()
        now_us, place = self._cluster.look(self._directory.node_id())
        after, now = time.time(), now_us / 1e6
        return max(before - now, 0.0) + min(after - now, 0.0), place

    def _place(self) -> str:
        """Returns a name of the id's file that is unique over machines and their starts."""
        status = self._directory.node.stat()
        return f"{_BOOT.read_text().strip()}/{status.st_dev}/{status.st_ino}"
