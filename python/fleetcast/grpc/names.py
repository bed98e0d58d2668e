"""Names of services on the wire."""

INGEST = "fleet.telemetry.v1.TelemetryIngest"
INGEST_BARE = "TelemetryIngest"
"""The contract calls the service by this name alone."""
HEALTH = "grpc.health.v1.Health"
REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")

SERVICES = frozenset({"", INGEST, INGEST_BARE})
"""Names that health knows: the whole server, and the service under both names."""
