"""PromQL of the service beside Prometheus: the same samples, the same queries, the same answers."""
