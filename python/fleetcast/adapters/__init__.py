"""Doors for clients that speak other protocols, on a listener of their own.

Requests are admitted as those of `http`. What differs is where the key stands, what a body is,
and the words of an answer. `adapters.toml` says under which names records are stored.
"""
