"""Planes in PostgreSQL and an object store, shared by the nodes of an installation."""

from fleetcast.cluster.engine import ClusterEngine as ClusterEngine
from fleetcast.cluster.engine import open_cluster as open_cluster
