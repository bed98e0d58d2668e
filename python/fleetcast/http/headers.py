"""Header fields of all answers, of the application and of the server alike."""

from __future__ import annotations

from random import getrandbits

CONTENT_TYPE = "application/json"
COMMON_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)
REQUEST_ID_HEADER = "X-Request-Id"


def new_request_id() -> str:
    """A random 128-bit id as 32 hexadecimal digits. It is no secret: no system call is made."""
    return f"{getrandbits(128):032x}"
