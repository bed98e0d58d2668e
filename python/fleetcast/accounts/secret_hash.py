"""Keyed hashes, which are all that is kept of the secrets of keys and operator tokens."""

from __future__ import annotations

import hmac

_NOBODYS_HASH = "0" * 64


class SecretHasher:
    """HMAC-SHA-256 under a key, in hexadecimal. Safe to share between threads."""

    def __init__(self, pepper: bytes) -> None:
        self._keyed = hmac.new(pepper, digestmod="sha256")

    def hash(self, secret: str) -> str:
        """The hash of a secret, of 64 characters."""
        one = self._keyed.copy()  # quicker than to begin with the key each time
        one.update(secret.encode())
        return one.hexdigest()

    def proves(self, secret: str, kept: str | None) -> bool:
        """True where `kept` is the hash of `secret`.

        `None`, where nothing is kept as the id is unknown, costs the same hash and comparison.
        """
        expected = _NOBODYS_HASH if kept is None else kept
        return hmac.compare_digest(self.hash(secret), expected) and kept is not None
