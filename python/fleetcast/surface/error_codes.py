"""The one table of error codes: status over HTTP, status over gRPC, and when to retry.

HTTP, gRPC and the description of the API read the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import Refused, StoreError, refused
from fleetcast.forecast.serving.store import PredictionStoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRY_SECONDS = 5
"""Delay before the next attempt if no better number is known."""


class ErrorCode(NamedTuple):
    """Statuses and headers that go with a code."""

    http: int = 0
    """HTTP status; 0 if the code is never sent over HTTP."""
    grpc: str = ""
    """Name of the gRPC status; empty if the code is never sent over gRPC."""
    retry_seconds: int | None = None
    """Delay before the next attempt, unless the refusal has a delay; `None` for no attempt."""
    headers: tuple[tuple[str, str | None], ...] = ()
    """HTTP headers. A value of `None` comes from the refusal's field with the lower-case name.

    Example: `("Allow", None)` takes its value from the field `allow`.
    """

    @property
    def header_names(self) -> tuple[str, ...]:
        """Names of the headers that an HTTP response has because of this code."""
        names = tuple(name for name, _ in self.headers)
        return names if self.retry_seconds is None else (*names, "Retry-After")


ERROR_CODES: Mapping[str, ErrorCode] = {
    # A head that is no HTTP.
    "bad_request": ErrorCode(400),
    "uri_too_long": ErrorCode(414),
    "expectation_failed": ErrorCode(417),
    "headers_too_large": ErrorCode(431),
    "unsupported_transfer_coding": ErrorCode(501),
    # A path, a method, a service.
    "not_found": ErrorCode(404),
    "unknown_service": ErrorCode(grpc="NOT_FOUND"),
    "method_not_allowed": ErrorCode(405, headers=(("Allow", None),)),
    # Senders, and their rights.
    "rate_limited": ErrorCode(429, retry_seconds=RETRY_SECONDS),
    "auth_lockout": ErrorCode(429, retry_seconds=RETRY_SECONDS),
    "too_many_calls": ErrorCode(grpc="RESOURCE_EXHAUSTED"),
    "auth_failed": ErrorCode(
        401, "UNAUTHENTICATED", headers=(("WWW-Authenticate", 'ApiKey realm="fleet-telemetry"'),)
    ),
    "tenant_disabled": ErrorCode(403, "PERMISSION_DENIED"),
    "tenant_unknown": ErrorCode(404, "PERMISSION_DENIED"),
    "insufficient_scope": ErrorCode(403, "PERMISSION_DENIED"),
    "live_ingest_not_entitled": ErrorCode(403, "PERMISSION_DENIED"),
    "predictions_not_enabled": ErrorCode(404),
    # A body, and a batch in it.
    "length_required": ErrorCode(411),
    "invalid_content_length": ErrorCode(400),
    "request_too_large": ErrorCode(413),
    "unsupported_content_encoding": ErrorCode(415, headers=(("Accept-Encoding", "identity"),)),
    "unsupported_encoding": ErrorCode(grpc="UNIMPLEMENTED"),
    "unsupported_media_type": ErrorCode(415),
    "read_deadline_exceeded": ErrorCode(grpc="DEADLINE_EXCEEDED"),
    "schema_faults": ErrorCode(422),
    "invalid_input": ErrorCode(400, "INVALID_ARGUMENT"),
    "batch_too_large": ErrorCode(413, "RESOURCE_EXHAUSTED"),
    "field_type_conflict": ErrorCode(400, "INTERNAL"),
    # A query.
    "missing_link_ids": ErrorCode(400),
    "too_many_link_ids": ErrorCode(400),
    "invalid_query_parameter": ErrorCode(400),
    "unknown_query_parameter": ErrorCode(400),
    "unknown_measurement": ErrorCode(422),
    "agg_requires_interval": ErrorCode(422),
    "invalid_range": ErrorCode(422),
    "history_horizon_exceeded": ErrorCode(422),
    "interval_required": ErrorCode(422),
    "interval_too_fine": ErrorCode(422),
    # The service cannot do it now.
    "ingest_buffer_full": ErrorCode(503, "RESOURCE_EXHAUSTED", 1),
    "auth_unavailable": ErrorCode(503, retry_seconds=RETRY_SECONDS),
    "entitlement_unavailable": ErrorCode(503, "UNAVAILABLE", RETRY_SECONDS),
    "tenant_unavailable": ErrorCode(503, "UNAVAILABLE", RETRY_SECONDS),
    "telemetry_unavailable": ErrorCode(503, "UNAVAILABLE", RETRY_SECONDS),
    "prediction_store_unavailable": ErrorCode(503, retry_seconds=RETRY_SECONDS),
    # A bug.
    "internal_error": ErrorCode(500),
    "internal": ErrorCode(grpc="INTERNAL"),
}


def refusal_of(error: BaseException, *, ingest: bool) -> Refused | None:
    """Returns the refusal that an exception stands for, or `None` for an unforeseen exception.

    `ingest` is true if the request is a write. Example: `ControlStoreUnavailable` becomes
    `entitlement_unavailable` for a write and `auth_unavailable` for a read.
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, StoreError):
        return refused("telemetry_unavailable")
    if isinstance(error, ControlStoreUnavailable):
        return refused("entitlement_unavailable" if ingest else "auth_unavailable")
    if isinstance(error, PredictionStoreUnavailable):
        return refused("prediction_store_unavailable")
    return None


def write_outcome(error: Exception) -> str:
    """Returns `none` if a write that failed so is not stored, or `unknown` if it may be stored.

    The engine says so about errors of a store. A refusal comes before the store is asked.
    """
    if isinstance(error, Refused | ControlStoreUnavailable):
        return "none"
    return getattr(error, "write_outcome", "unknown")
