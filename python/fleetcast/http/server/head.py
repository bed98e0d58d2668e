"""Request heads as data, and the plain form that nearly all of them have.

A plain head is read with one expression. Whatever is not plain in every byte (folded fields, names
sent twice, transfer codings, tabs, an empty value …) goes to gunicorn's parser, which alone decides
what is malformed. What is plain here, that parser reads the same way; a test compares them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONTENT_LENGTH_DIGITS_MAX = 18
_NAMES_MAX = 256  # field names remembered with their WSGI variables
_PLAIN = re.compile(
    r"""([A-Z]++)\ (/(?!/)[!"$->@-~]*+)(?:\?([!"$-~]*+))?\ HTTP/1\.1\r\n  # no fragment
    ((?:[A-Za-z0-9-]++:\ [!-~][ -~]*+(?<!\ )\r\n)*+)\r\n""",
    re.VERBOSE,
)


class RequestHead(NamedTuple):
    """Content of a well-formed head."""

    method: str
    path: str
    """Not decoded."""
    query: str
    version: str
    fields: dict[str, str]
    """By the names that WSGI has for them; values of a name sent twice are joined by a comma."""
    closes: bool
    """The client wants no further answer on this connection."""
    expects_continue: bool
    """It waits for `100 Continue` before it sends the body."""


def plain_head(held: bytearray, fields_max: int) -> RequestHead | None:
    """Reads `held`, or gives `None` where it is not one whole plain head."""
    match = _PLAIN.fullmatch(held.decode("latin-1"))
    if match is None:
        return None
    method, path, query, block = match.groups("")
    lines = block.split("\r\n")
    lines.pop()
    fields = {}
    for line in lines:
        name, _, value = line.partition(": ")
        fields[_variable(name)] = value
    if (
        len(fields) != len(lines)
        or len(lines) > fields_max
        or method == "CONNECT"
        or "HTTP_TRANSFER_ENCODING" in fields
        or "HTTP_EXPECT" in fields
        or fields.get("HTTP_CONNECTION", "keep-alive").lower() != "keep-alive"
    ):
        return None
    length = fields.get("CONTENT_LENGTH", "0")
    if not length.isdigit() or len(length) > _CONTENT_LENGTH_DIGITS_MAX:
        return None
    return RequestHead(
        method, path, query, "HTTP/1.1", fields, closes=False, expects_continue=False
    )


def joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Fields as `RequestHead` has them."""
    fields: dict[str, str] = {}
    for name, value in pairs:
        variable = _variable(name)
        known = fields.get(variable)
        fields[variable] = value if known is None else f"{known},{value}"
    return fields


@lru_cache(_NAMES_MAX)
def _variable(name: str) -> str:
    key = name.upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"
