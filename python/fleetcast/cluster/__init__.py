"""Records in PostgreSQL, shared by the nodes of an installation."""

from fleetcast.cluster.records import ClusterRecords
from fleetcast.cluster.replica import RecordReplica

__all__ = ["ClusterRecords", "RecordReplica"]
