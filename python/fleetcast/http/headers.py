"""Header fields that every answer carries, whoever makes it."""

from __future__ import annotations

import os

COMMON_HEADERS = (
    ("Content-Type", "application/json"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)
REQUEST_ID_HEADER = "X-Request-Id"


def new_request_id() -> str:
    """A random 128-bit id as 32 hexadecimal digits."""
    return os.urandom(16).hex()
