"""The handover of the master key of many nodes: a record in their database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError
from fleetcast.security.handover import Handover
from fleetcast.security.master_key import derive

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.engine import Cluster
    from fleetcast.installation.directory import DataDirectory

_PLACE = "the handover of the master key in PostgreSQL"
_CHECK_LABEL = "fleetcast control store check 1"


class ClusterHandover:
    """The handover in a database. Each node notes there that its settings name the new key."""

    def __init__(self, cluster: Cluster, directory: DataDirectory) -> None:
        self._cluster = cluster
        self._directory = directory

    def read(self) -> Handover | None:
        """Returns the handover; `None` if no key turns. Raises `OperatorError`, `StoreError`."""
        document = self._cluster.handover()
        return None if document is None else Handover.decode(document, _PLACE)

    def begin(self, old: bytes, new: bytes, file: Path | None) -> Handover:
        """Stores a handover from the key `old`, or returns the handover of another node.

        Raises `OperatorError` if the installation has another key, `StoreError`.
        """
        handover = Handover.of(old, new, file)
        if self._cluster.begin_handover(handover.encode(), database_check(old)):
            return handover
        begun = self.read()
        if begun is None:
            message = "the database belongs to an installation with another master key"
            raise OperatorError(message)
        return begun

    def withdraw(self) -> bool:
        """Does no work: other nodes may seal under the new key by now."""
        return False

    def nodes_left(self) -> list[str]:
        """Returns the nodes on which the turn is still to be made. Raises `StoreError`."""
        return self._cluster.nodes_behind()

    def settle(self, new: bytes) -> list[str]:
        """Notes that the settings of this node name the key `new`. Returns the nodes that are left.

        If none is left, the turn ends: from then on the old key opens nothing. Raises `StoreError`.
        """
        return self._cluster.settle_handover(self._directory.node_id(), database_check(new))


def database_check(master_key: bytes) -> bytes:
    """Returns a hash that differs between master keys and reveals no part of a key."""
    return derive(master_key, _CHECK_LABEL)
