"""Processes of the service: the supervisor, its children, and what they say to each other."""
