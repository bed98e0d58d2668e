"""The gRPC surface: one channel per ground station, one batch a second."""
