"""Forecasts: features of received samples, models, and orbits."""
