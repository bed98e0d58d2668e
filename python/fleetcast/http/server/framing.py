"""Request heads: where one ends, what it asks for, and the answer to a malformed one.

A head that is not plain is read by gunicorn's own parser; here are only the questions around it. A
malformed head is answered before any application code runs, in JSON.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from gunicorn.http.errors import (  # type: ignore[import-untyped]
    ExpectationFailed,
    InvalidHeader,
    LimitRequestHeaders,
    LimitRequestLine,
    NoMoreData,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request  # type: ignore[import-untyped]
from gunicorn.http.unreader import IterUnreader  # type: ignore[import-untyped]

from fleetcast.http.headers import COMMON_HEADERS, CONTENT_TYPE, REQUEST_ID_HEADER, new_request_id
from fleetcast.http.server.head import RequestHead, joined, plain_head
from fleetcast.surface.error_codes import ERROR_CODES

if TYPE_CHECKING:
    from gunicorn.config import Config  # type: ignore[import-untyped]

    from fleetcast.http.server.limits import ConnectionLimits

HEAD_END = b"\r\n\r\n"
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_NO_PEER = ("", 0)  # for the parser: no peer may say more than its request

_CODES: tuple[tuple[type[Exception], str], ...] = (
    (LimitRequestLine, "uri_too_long"),
    (LimitRequestHeaders, "headers_too_large"),
    (ExpectationFailed, "expectation_failed"),
    (UnsupportedTransferCoding, "unsupported_transfer_coding"),
)


class ParserSettings:
    """gunicorn's settings, each looked up once: its parser asks for fourteen with every head."""

    limit_request_line: int
    limit_request_fields: int
    limit_request_field_size: int

    def __init__(self, config: Config) -> None:
        self._config = config

    def __getattr__(self, name: str) -> object:
        value: object = getattr(self._config, name)
        setattr(self, name, value)
        return value


class Malformed(Exception):
    """A head that gets no further than the parser; `answer` is the whole response."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.code = _code(cause)
        self.status = ERROR_CODES[self.code].http
        self.request_id = new_request_id()
        self.answer = whole_answer(self.code, self.request_id)


class FramedRequest(NamedTuple):
    """A well-formed head, and how the body behind it is to be treated."""

    head: RequestHead
    body_bytes: int
    """The value of Content-Length; 0 without one."""
    buffered: bool
    """The body is to be read before the request is served."""
    reusable: bool
    """The start of the next request on this connection is known."""
    oversized: bool
    """The body is longer than was allowed when the head came, so nobody reads it."""


def head_bytes(held: bytearray, peeked: bytes) -> int:
    """Count of the `peeked` bytes that belong to the head whose beginning is `held`."""
    overlap = bytes(held[-3:])
    found = (overlap + peeked).find(HEAD_END)
    return len(peeked) if found < 0 else found + len(HEAD_END) - len(overlap)


def parse(
    settings: ParserSettings, held: bytearray, limits: ConnectionLimits
) -> FramedRequest | None:
    """The head in `held`, or `None` while it is incomplete.

    Raises `Malformed`, also for a beginning that no continuation can mend.
    """
    if not held.endswith(HEAD_END) and not _beyond_repair(held, settings, limits):
        return None
    try:
        if len(held) > limits.head_bytes_max:
            message = f"more than {limits.head_bytes_max} bytes"
            raise LimitRequestHeaders(message)
        return _judge(_read_head(settings, held), limits)
    except NoMoreData:
        return None
    except ParseException as error:
        raise Malformed(error) from error


def _read_head(settings: ParserSettings, held: bytearray) -> RequestHead:
    # No line of so short a head can be too long.
    if len(held) <= min(settings.limit_request_line, settings.limit_request_field_size):
        plain = plain_head(held, settings.limit_request_fields)
        if plain is not None:
            return plain
    return gunicorn_head(settings, held)


def gunicorn_head(settings: ParserSettings, held: bytearray) -> RequestHead:
    """Reads a head with gunicorn's parser. Raises its `NoMoreData`, `ParseException`."""
    request = Request(settings, IterUnreader([bytes(held)]), _NO_PEER)
    return RequestHead(
        request.method,
        request.path,
        request.query,
        "HTTP/{}.{}".format(*request.version),
        joined(request.headers),
        closes=bool(request.should_close()),
        expects_continue=bool(request._expected_100_continue),  # noqa: SLF001 - it has no other name
    )


def _beyond_repair(held: bytearray, settings: ParserSettings, limits: ConnectionLimits) -> bool:
    line_end = held.find(b"\r\n", 2)
    return (
        len(held) > limits.head_bytes_max
        or (line_end < 0 and len(held) > settings.limit_request_line)
        or held.count(b"\n") != held.count(b"\r\n")
    )


def _judge(head: RequestHead, limits: ConnectionLimits) -> FramedRequest:
    body_bytes = int(head.fields.get("CONTENT_LENGTH", 0))
    writes = head.method in METHODS_WITH_BODY
    oversized = writes and body_bytes > limits.body_bytes_max
    buffered = writes and body_bytes > 0 and not oversized
    skippable = buffered or body_bytes <= limits.drain_bytes_max
    waiting = head.expects_continue and not buffered
    # Chunks are never read, so nobody knows where the next request would start.
    chunked = "HTTP_TRANSFER_ENCODING" in head.fields
    reusable = not (chunked or oversized or waiting or not skippable or head.closes)
    return FramedRequest(head, body_bytes, buffered, reusable, oversized)


def _code(cause: Exception) -> str:
    if isinstance(cause, InvalidHeader) and cause.hdr == "CONTENT-LENGTH":
        return "invalid_content_length"
    return next((code for kind, code in _CODES if isinstance(cause, kind)), "bad_request")


def whole_answer(code: str, request_id: str, /, **context: str) -> bytes:
    """A response in bytes that ends its connection, for what no application answers."""
    status = HTTPStatus(ERROR_CODES[code].http)
    body = json.dumps({"error": code, **context}).encode()
    fields = [
        ("Content-Type", CONTENT_TYPE),
        *COMMON_HEADERS,
        (REQUEST_ID_HEADER, request_id),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"HTTP/1.1 {status} {status.phrase}\r\n{lines}\r\n".encode() + body
