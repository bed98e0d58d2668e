"""The running service: many channels, many tenants, kills, hostile clients, real telemetry."""
