"""Puts services together for a process, and the work beside the requests."""
