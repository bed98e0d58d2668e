"""Parts that the texts of keys and of operator tokens share: an id, a secret, a checksum.

No part but the separators holds an underscore. The checksum is the CRC-32 of all before it, so a
mistyped text is refused before anything is looked up, and a leaked one is easy to search for.
"""

from __future__ import annotations

import base64
import re
import secrets
import zlib

_ID_BYTES = 10
_SECRET_BYTES = 20  # 160 bits


def grammar(prefix: str) -> re.Pattern[str]:
    """The form of texts that begin with `prefix`, a pattern whose groups are parts as well.

    Group 1 is all but the checksum; then come those of `prefix`, the id, the secret, the checksum.
    """
    return re.compile(rf"({prefix}_([a-z2-7]{{16}})_([a-z2-7]{{32}}))([0-9a-f]{{8}})")


def with_checksum(checked: str) -> str:
    """A text with its checksum, 8 hexadecimal digits."""
    return f"{checked}{zlib.crc32(checked.encode()):08x}"


def checked_parts(pattern: re.Pattern[str], text: str) -> tuple[str, ...] | None:
    """The parts of a text of a `grammar`, `None` where it is none or its checksum is wrong."""
    match = pattern.fullmatch(text)
    if match is None or with_checksum(match[1]) != text:
        return None
    return match.groups()[1:-1]


def random_id() -> str:
    """A new id, of 16 characters."""
    return _random(_ID_BYTES)


def random_secret() -> str:
    """A new secret, of 32 characters."""
    return _random(_SECRET_BYTES)


def _random(size: int) -> str:
    return base64.b32encode(secrets.token_bytes(size)).decode().lower()
