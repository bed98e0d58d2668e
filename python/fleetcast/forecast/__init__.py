"""Forecasts: features of what was received, models, and what is known of orbits."""
