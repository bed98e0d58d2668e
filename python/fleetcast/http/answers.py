"""One table from refusal codes to statuses; the only place that knows both.

Whatever is raised below becomes one of these answers. Bodies are `{"error": code, **context}`,
but for schema faults, which are a `detail` list.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.errors import Refused, StoreError, refused

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUSES: Mapping[str, int] = {
    "invalid_input": 400,
    "field_type_conflict": 400,
    "invalid_content_length": 400,
    "missing_link_ids": 400,
    "too_many_link_ids": 400,
    "invalid_query_parameter": 400,
    "unknown_query_parameter": 400,
    "auth_failed": 401,
    "insufficient_scope": 403,
    "live_ingest_not_entitled": 403,
    "tenant_disabled": 403,
    "not_found": 404,
    "tenant_unknown": 404,
    "predictions_not_enabled": 404,
    "method_not_allowed": 405,
    "length_required": 411,
    "batch_too_large": 413,
    "request_too_large": 413,
    "unsupported_content_encoding": 415,
    "schema_faults": 422,
    "unknown_measurement": 422,
    "agg_requires_interval": 422,
    "invalid_range": 422,
    "history_horizon_exceeded": 422,
    "interval_required": 422,
    "interval_too_fine": 422,
    "rate_limited": 429,
    "auth_lockout": 429,
    "auth_unavailable": 503,
    "entitlement_unavailable": 503,
    "ingest_buffer_full": 503,
    "prediction_store_unavailable": 503,
    "telemetry_unavailable": 503,
    "tenant_unavailable": 503,
}
"""Every code an answer can carry, but `internal_error`."""

_HEADERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "auth_failed": (("WWW-Authenticate", 'ApiKey realm="fleet-telemetry"'),),
    "unsupported_content_encoding": (("Accept-Encoding", "identity"),),
}
_RETRY_SECONDS = 5
_RETRY_SECONDS_OF: Mapping[str, int] = {"ingest_buffer_full": 1}

_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """A response as data; `content` of `None` is no body at all."""

    status: int
    content: Mapping[str, object] | None
    headers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def code(self) -> str | None:
        """The error code, `schema_faults` for a list of those."""
        if self.content is None:
            return None
        return "schema_faults" if "detail" in self.content else str(self.content.get("error"))

    @property
    def body(self) -> bytes:
        """The body in JSON."""
        return b"" if self.content is None else encode(self.content)


def encode(content: Mapping[str, object]) -> bytes:
    """Compact JSON in UTF-8. Raises `ValueError` for NaN and infinities."""
    return _ENCODE(content).encode()


def answer_to(error: Exception, *, backend: str, request_id: str) -> Answer:
    """The answer to anything raised while a request was served.

    `backend` names the time-series store in 503 answers. What nobody foresaw is logged, and tells
    the client nothing but the request id.
    """
    if isinstance(error, StoreError):
        logger.error("store unavailable: %s", error, extra={"request_id": request_id})
        error = refused("telemetry_unavailable", upstream=backend)
    if isinstance(error, Refused):
        code, context = error.args
        if code in STATUSES:
            return _refusal(code, context)
    logger.error("unexpected error", exc_info=error, extra={"request_id": request_id})
    return Answer(500, {"error": "internal_error", "request_id": request_id})


def _refusal(code: str, context: Mapping[str, object]) -> Answer:
    status = STATUSES[code]
    headers = list(_HEADERS.get(code, ()))
    rest = dict(context)
    if status in {429, 503}:
        seconds = rest.pop("retry_after_seconds", _RETRY_SECONDS_OF.get(code, _RETRY_SECONDS))
        headers.append(("Retry-After", str(seconds)))
        if status == 503:  # noqa: PLR2004 - the body of a 429 is its code alone
            rest["retry_after_seconds"] = seconds
    if code == "method_not_allowed":
        headers.append(("Allow", str(rest.pop("allow"))))
    if code == "schema_faults":
        return Answer(status, {"detail": rest["detail"]}, headers)
    return Answer(status, {"error": code, **rest}, headers)
