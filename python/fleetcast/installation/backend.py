"""Choice of the stores of an installation, by `store.backend`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.config.sections import POSTGRESQL
from fleetcast.installation.embedded_stores import EmbeddedStores
from fleetcast.security.handover import HandoverFile

if TYPE_CHECKING:
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores
    from fleetcast.security.handover import HandoverPlace


def stores_of(
    directory: DataDirectory, settings: Settings, master_key: bytes, *, follow: bool = False
) -> Stores:
    """Opens the stores that the settings name.

    Processes that serve set `follow`. They then hear of other nodes' changes of accounts within a
    second, and need no round trip to read accounts. Raises `OperatorError` if this build lacks the
    backend.
    """
    if settings.store.backend == POSTGRESQL:
        from fleetcast.installation.cluster_stores import ClusterStores  # noqa: PLC0415 - few need it

        return ClusterStores(directory, settings, master_key, follow=follow)
    return EmbeddedStores(directory, settings, master_key)


def handover_of(directory: DataDirectory, settings: Settings) -> HandoverPlace:
    """Returns the place of the handover. Raises `OperatorError` if this build lacks the backend."""
    if settings.store.backend == POSTGRESQL:
        from fleetcast.cluster import open_cluster  # noqa: PLC0415 - few need it
        from fleetcast.installation.cluster_handover import ClusterHandover  # noqa: PLC0415 - as above

        cluster = open_cluster(settings.store, directory.cache / "objects")
        return ClusterHandover(cluster, directory)
    return HandoverFile(directory.root)
