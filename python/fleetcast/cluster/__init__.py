"""Records and planes in PostgreSQL and an object store, shared by the nodes of an installation."""

from fleetcast.cluster.engine import ClusterEngine, open_cluster
from fleetcast.cluster.records import ClusterRecords
from fleetcast.cluster.replica import RecordReplica

__all__ = ["ClusterEngine", "ClusterRecords", "RecordReplica", "open_cluster"]
