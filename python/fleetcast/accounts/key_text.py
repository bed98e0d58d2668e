"""The text of an API key: `ftk_<environment>_<key id>_<secret><checksum>`.

No part but the separators holds an underscore. The checksum is the CRC-32 of all before it, so a
mistyped key is refused before anything is looked up, and a leaked one is easy to search for.
"""

from __future__ import annotations

import base64
import re
import secrets
import zlib
from typing import NamedTuple

_ID_BYTES = 10
_SECRET_BYTES = 20  # 160 bits
_GRAMMAR = re.compile(r"(ftk_([a-z0-9-]{1,63})_([a-z2-7]{16})_([a-z2-7]{32}))([0-9a-f]{8})")


class KeyText(NamedTuple):
    """The parts of a well-formed key."""

    environment: str
    key_id: str
    secret: str

    def __str__(self) -> str:
        checked = f"ftk_{self.environment}_{self.key_id}_{self.secret}"
        return checked + checksum(checked)

    def __repr__(self) -> str:
        return f"KeyText({self.environment!r}, {self.key_id!r}, '***')"


def new_key_text(environment: str) -> KeyText:
    """A new id and a new secret."""
    return KeyText(environment, random_id(), random_secret())


def read_key_text(text: str) -> KeyText | None:
    """The parts of a key, or `None` where the text is not one."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        return None
    checked, environment, key_id, secret, check = match.groups()
    return KeyText(environment, key_id, secret) if checksum(checked) == check else None


def checksum(text: str) -> str:
    """The CRC-32 in hexadecimal."""
    return f"{zlib.crc32(text.encode()):08x}"


def random_id() -> str:
    """A new id, of 16 characters."""
    return _random(_ID_BYTES)


def random_secret() -> str:
    """A new secret, of 32 characters."""
    return _random(_SECRET_BYTES)


def _random(size: int) -> str:
    return base64.b32encode(secrets.token_bytes(size)).decode().lower()
