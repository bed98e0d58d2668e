"""Planes in PostgreSQL and an object store, shared by the nodes of an installation."""

from fleetcast.cluster.engine import ClusterEngine, open_cluster

__all__ = ["ClusterEngine", "open_cluster"]
