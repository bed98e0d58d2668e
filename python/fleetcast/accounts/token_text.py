"""The text of an operator token: `fto_<token id>_<secret><checksum>`.

It opens the console and nothing of the public listeners, which know no such prefix.
"""

from __future__ import annotations

from typing import NamedTuple

from fleetcast.accounts.secret_text import (
    checked_parts,
    grammar,
    random_id,
    random_secret,
    with_checksum,
)

_GRAMMAR = grammar("fto")


class TokenText(NamedTuple):
    """The parts of a well-formed token."""

    token_id: str
    secret: str

    def __str__(self) -> str:
        return with_checksum(f"fto_{self.token_id}_{self.secret}")

    def __repr__(self) -> str:
        return f"TokenText({self.token_id!r}, '***')"


def new_token_text() -> TokenText:
    """A new id and a new secret."""
    return TokenText(random_id(), random_secret())


def read_token_text(text: str) -> TokenText | None:
    """The parts of a token, or `None` where the text is not one."""
    parts = checked_parts(_GRAMMAR, text)
    return None if parts is None else TokenText(*parts)
