"""Readers of the sources, for the tests that keep the house in order."""
