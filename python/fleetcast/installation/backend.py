"""Choice of the stores of an installation, by `store.backend`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.config.sections import POSTGRESQL
from fleetcast.installation.embedded_stores import EmbeddedStores

if TYPE_CHECKING:
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores


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
