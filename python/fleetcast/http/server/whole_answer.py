"""Answers of the server itself to requests that no application answers.

The connection ends after such an answer.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import NamedTuple

from fleetcast.http.headers import COMMON_HEADERS, CONTENT_TYPE, REQUEST_ID_HEADER, new_request_id
from fleetcast.surface.error_codes import ERROR_CODES


class WholeAnswer(NamedTuple):
    """A whole response with an error code."""

    code: str
    status: int
    request_id: str
    body: bytes

    def __bytes__(self) -> bytes:
        status = HTTPStatus(self.status)
        fields = [
            ("Content-Type", CONTENT_TYPE),
            *COMMON_HEADERS,
            (REQUEST_ID_HEADER, self.request_id),
            ("Content-Length", str(len(self.body))),
            ("Connection", "close"),
        ]
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        return f"HTTP/1.1 {status} {status.phrase}\r\n{lines}\r\n".encode() + self.body


def malformed(code: str) -> WholeAnswer:
    """Returns the answer to a head that the parser refuses."""
    return _answer(code, new_request_id(), {"error": code})


def failed() -> WholeAnswer:
    """Returns the answer if the application failed. The body has the id of the log line."""
    request_id = new_request_id()
    return _answer(
        "internal_error", request_id, {"error": "internal_error", "request_id": request_id}
    )


def _answer(code: str, request_id: str, content: dict[str, str]) -> WholeAnswer:
    return WholeAnswer(code, ERROR_CODES[code].http, request_id, json.dumps(content).encode())
