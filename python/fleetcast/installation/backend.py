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
    """The stores that the settings name.

    With `follow`, for processes that serve, changes of accounts by other nodes are heard of within
    a second, and looking at accounts costs no round trip. Raises `OperatorError` where this build
    cannot have them.
    """
    if settings.store.backend == POSTGRESQL:
        from fleetcast.installation.cluster_stores import ClusterStores  # noqa: PLC0415 - few need it

        return ClusterStores(directory, settings, master_key, follow=follow)
    return EmbeddedStores(directory, settings, master_key)
