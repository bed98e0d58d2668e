"""Fleet telemetry: a sealed, durable time-series store and its service."""
