"""Stores of an installation as one process opens them, after a fork; each at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fleetcast.installation.cluster_stores import ClusterStores
    from fleetcast.installation.embedded_stores import EmbeddedStores

Stores: TypeAlias = "EmbeddedStores | ClusterStores"
