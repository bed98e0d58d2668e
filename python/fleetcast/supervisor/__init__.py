"""Processes of the service: the supervisor, its children, and the messages between them."""
