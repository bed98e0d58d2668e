"""The master key of a data directory and the certificate of its gRPC listener."""
