"""Puts services together for a process, and the work that goes on next to its requests."""
