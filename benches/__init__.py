"""Measurements of fleetcast, by subject; each runs as a module: `python -m benches.goals`."""
