"""Telemetry in bulk: reading files, and writing them to a tenant's data plane."""
