"""Doors for clients that speak other protocols, on a listener of their own.

Each request passes the pipeline of `http`; what differs is where the key stands, what a body is,
and the words of an answer. `adapters.toml` says under which names records are stored.
"""
