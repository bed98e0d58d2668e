"""Header fields that every answer carries, whoever makes it (decisions A26)."""

from __future__ import annotations

import os

CONTENT_TYPE = "application/json"
COMMON_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)
REQUEST_ID_HEADER = "X-Request-Id"


def new_request_id() -> str:
    """A random 128-bit id as 32 hexadecimal digits."""
    return os.urandom(16).hex()
