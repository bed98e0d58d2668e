"""One table from refusal codes to gRPC statuses; the only place that knows both.

The details of a status are the code, for two of them with the field: `invalid_input:entity_id`.
What may be sent again says so and when, as `google.rpc.RetryInfo` in `grpc-status-details-bin`;
what must not be says nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import Refused, StoreError, refused
from fleetcast.protobuf import delimited, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUSES: Mapping[str, grpc.StatusCode] = {
    "invalid_input": grpc.StatusCode.INVALID_ARGUMENT,
    "auth_failed": grpc.StatusCode.UNAUTHENTICATED,
    "insufficient_scope": grpc.StatusCode.PERMISSION_DENIED,
    "live_ingest_not_entitled": grpc.StatusCode.PERMISSION_DENIED,
    "tenant_disabled": grpc.StatusCode.PERMISSION_DENIED,
    "tenant_unknown": grpc.StatusCode.PERMISSION_DENIED,
    "batch_too_large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "ingest_buffer_full": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "entitlement_unavailable": grpc.StatusCode.UNAVAILABLE,
    "telemetry_unavailable": grpc.StatusCode.UNAVAILABLE,
    "tenant_unavailable": grpc.StatusCode.UNAVAILABLE,
    "field_type_conflict": grpc.StatusCode.INTERNAL,
    "read_deadline_exceeded": grpc.StatusCode.DEADLINE_EXCEEDED,
    "too_many_calls": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "unknown_service": grpc.StatusCode.NOT_FOUND,
}
"""Every code a status can carry, but `internal`."""

_RETRY_SECONDS: Mapping[str, int] = {
    "ingest_buffer_full": 1,
    "entitlement_unavailable": 5,
    "telemetry_unavailable": 5,
    "tenant_unavailable": 5,
}
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_FIELD_CHARACTERS_MAX = 1000  # trailers share one bounded block; a name may have a megabyte

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """A status that is not OK."""

    status: grpc.StatusCode
    details: str
    retry_seconds: int | None = None

    @property
    def trailers(self) -> tuple[tuple[str, bytes], ...]:
        """The trailing metadata: a `google.rpc.Status` where the call may be sent again."""
        if self.retry_seconds is None:
            return ()
        retry_info = delimited(1, integer(1, self.retry_seconds))
        status = (
            integer(1, self.status.value[0])
            + delimited(2, self.details)
            + delimited(3, delimited(1, _RETRY_INFO) + delimited(2, retry_info))
        )
        return (("grpc-status-details-bin", status),)


def answer_to(error: BaseException) -> Answer:
    """The answer to anything raised while a call was served.

    What nobody foresaw is logged, and tells the client nothing.
    """
    if isinstance(error, StoreError):
        logger.error("store unavailable: %s", error)
        error = refused("telemetry_unavailable")
    elif isinstance(error, ControlStoreUnavailable):
        logger.error("keys cannot be checked: %s", error)
        error = refused("entitlement_unavailable")
    if isinstance(error, Refused):
        code, context = error.args
        if code in STATUSES:
            field = context.get("field")
            details = code if field is None else f"{code}:{str(field)[:_FIELD_CHARACTERS_MAX]}"
            return Answer(STATUSES[code], details, _RETRY_SECONDS.get(code))
    logger.error("unexpected error", exc_info=error)
    return Answer(grpc.StatusCode.INTERNAL, "internal")
