"""The private listener: probes, metrics and the description of the public API."""
