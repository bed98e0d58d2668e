"""The text of an operator token: `fto_<token id>_<secret><checksum>`, made as that of a key is.

It opens the console and nothing of the public listeners, which know no such prefix.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fleetcast.accounts.key_text import checksum, random_id, random_secret

_GRAMMAR = re.compile(r"(fto_([a-z2-7]{16})_([a-z2-7]{32}))([0-9a-f]{8})")


class TokenText(NamedTuple):
    """The parts of a well-formed token."""

    token_id: str
    secret: str

    def __str__(self) -> str:
        checked = f"fto_{self.token_id}_{self.secret}"
        return checked + checksum(checked)

    def __repr__(self) -> str:
        return f"TokenText({self.token_id!r}, '***')"


def new_token_text() -> TokenText:
    """A new id and a new secret."""
    return TokenText(random_id(), random_secret())


def read_token_text(text: str) -> TokenText | None:
    """The parts of a token, or `None` where the text is not one."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        return None
    checked, token_id, secret, check = match.groups()
    return TokenText(token_id, secret) if checksum(checked) == check else None
