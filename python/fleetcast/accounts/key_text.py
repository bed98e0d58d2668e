"""The text of an API key: `ftk_<environment>_<key id>_<secret><checksum>`."""

from __future__ import annotations

from typing import NamedTuple

from fleetcast.accounts.secret_text import (
    checked_parts,
    grammar,
    random_id,
    random_secret,
    with_checksum,
)

_GRAMMAR = grammar("ftk_([a-z0-9-]{1,63})")


class KeyText(NamedTuple):
    """The parts of a well-formed key."""

    environment: str
    key_id: str
    secret: str

    def __str__(self) -> str:
        return with_checksum(f"ftk_{self.environment}_{self.key_id}_{self.secret}")

    def __repr__(self) -> str:
        return f"KeyText({self.environment!r}, {self.key_id!r}, '***')"


def new_key_text(environment: str) -> KeyText:
    """A new id and a new secret."""
    return KeyText(environment, random_id(), random_secret())


def read_key_text(text: str) -> KeyText | None:
    """The parts of a key, or `None` where the text is not one."""
    parts = checked_parts(_GRAMMAR, text)
    return None if parts is None else KeyText(*parts)
