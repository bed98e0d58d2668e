"""Responses to errors, by the table of error codes.

Bodies are `{"error": code, **context}`. Schema faults are a `detail` list instead. Example:
`{"error":"too_many_link_ids","max":100}`.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError
from fleetcast.surface.error_codes import ERROR_CODES, refusal_of, write_outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.surface.error_codes import ErrorCode

_UNAVAILABLE = 503
_OF_SERVICE = (500, _UNAVAILABLE)
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ErrorResponse:
    """A response that reports an error."""

    code: str
    status: int
    content: Mapping[str, object]
    headers: list[tuple[str, str]]


def encode(content: Mapping[str, object]) -> bytes:
    """Compact JSON in UTF-8. Raises `ValueError` for NaN and infinities."""
    return _ENCODE(content).encode()


def error_response(
    error: Exception, *, backend: str, request_id: str, ingest: bool = False
) -> ErrorResponse:
    """Returns the response to an exception raised while a request was served.

    `backend` names the time-series store, for an error of that store; `ingest` is true for a write.
    An unforeseen exception is logged, and the client learns only the request id.
    """
    upstream = {}
    if isinstance(error, StoreError):
        logger.error("store unavailable: %s", error, extra={"request_id": request_id})
        upstream = {"upstream": backend}
    refusal = refusal_of(error, ingest=ingest)
    code, context = ("", {}) if refusal is None else refusal.args
    row = ERROR_CODES.get(code)
    if row is None or not row.http:
        logger.error("unexpected error", exc_info=error, extra={"request_id": request_id})
        code, context, upstream = "internal_error", {"request_id": request_id}, {}
        row = ERROR_CODES[code]
    answer = _response(code, row, {**context, **upstream})
    if ingest and answer.status in _OF_SERVICE:
        answer.headers.append(("X-Write-Outcome", write_outcome(error)))
    return answer


def _response(code: str, row: ErrorCode, members: dict[str, object]) -> ErrorResponse:
    headers = [
        (name, str(members.pop(name.lower())) if value is None else value)
        for name, value in row.headers
    ]
    if row.retry_seconds is not None:
        seconds = members.pop("retry_after_seconds", row.retry_seconds)
        headers.append(("Retry-After", str(seconds)))
        if row.http == _UNAVAILABLE:  # the body of a 429 has only the code
            members["retry_after_seconds"] = seconds
    content = members if code == "schema_faults" else {"error": code, **members}
    return ErrorResponse(code, row.http, content, headers)
