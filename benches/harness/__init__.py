"""Processes under test, the clients that drive them, and clocks."""
