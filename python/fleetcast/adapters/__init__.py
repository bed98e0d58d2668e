"""Listener for clients that speak other protocols.

Requests are admitted as in `http`. The protocols differ in the place of the key, in the form of the
body, and in the words of an answer. `adapters.toml` says under which names records are stored.
"""
