"""Checks of the head of a write, then its whole body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.errors import refused

if TYPE_CHECKING:
    import falcon

    from fleetcast.engine import RequestBody


def check_headers(request: falcon.Request, body_bytes_max: int) -> int:
    """The length of the body in bytes, nothing read yet.

    Raises `Refused`: `length_required`, `request_too_large`, `unsupported_content_encoding`,
    `schema_faults` for another content type, in this order; `invalid_content_length` where no
    parser in front has caught it.
    """
    text = request.env.get("CONTENT_LENGTH")
    if text is None:
        raise refused("length_required")
    if not (text.isascii() and text.isdigit()):
        raise refused("invalid_content_length")
    length = int(text)
    # The limit may have been raised since the head was judged and its body left unread.
    if length > body_bytes_max or request.env.get("fleetcast.oversized", False):
        raise refused("request_too_large")
    coding = request.get_header("Content-Encoding")
    if coding is not None and coding.strip().lower() != "identity":
        raise refused("unsupported_content_encoding")
    if not _is_json(request.content_type):
        fault = {
            "type": "content_type",
            "loc": ["header", "content-type"],
            "msg": "Content-Type should be application/json",
        }
        raise refused("schema_faults", detail=[fault])
    return length


def read_body(request: falcon.Request, length: int) -> bytes | RequestBody:
    """The whole body. Raises `Refused`: `invalid_content_length` where it ends early."""
    body: bytes | RequestBody | None = request.env.get("fleetcast.body")
    if body is None:
        body = request.env["wsgi.input"].read(length)
    if len(body) != length:
        raise refused("invalid_content_length")
    if not body:
        fault = {"type": "missing", "loc": ["body"], "msg": "Field required"}
        raise refused("schema_faults", detail=[fault])
    return body


def _is_json(content_type: str | None) -> bool:
    if content_type is None:
        return True
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/json":
        return True
    return media_type.startswith("application/") and media_type.endswith("+json")
