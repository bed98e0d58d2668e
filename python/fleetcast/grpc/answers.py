"""Statuses of errors: whatever is raised below becomes one, by the table of error codes.

The details of a status are the code, for two of them with the field: `invalid_input:entity_id`.
Where a call may be sent again, `google.rpc.RetryInfo` in `grpc-status-details-bin` says when; else
nothing is there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import grpc

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import StoreError
from fleetcast.protobuf import delimited, integer
from fleetcast.surface.error_codes import ERROR_CODES, refusal_of

_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_FIELD_CHARACTERS_MAX = 1000  # trailers share one bounded block; a name may have a megabyte

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ErrorStatus:
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


def error_status(error: BaseException) -> ErrorStatus:
    """The status of anything raised while a call was served.

    An exception that nobody foresaw is logged, and tells the client nothing.
    """
    if isinstance(error, StoreError):
        logger.error("store unavailable: %s", error)
    elif isinstance(error, ControlStoreUnavailable):
        logger.error("keys cannot be checked: %s", error)
    refusal = refusal_of(error, ingest=True)
    if refusal is not None:
        code, context = refusal.args
        row = ERROR_CODES.get(code)
        if row is not None and row.grpc:
            field = context.get("field")
            details = code if field is None else f"{code}:{str(field)[:_FIELD_CHARACTERS_MAX]}"
            return ErrorStatus(grpc.StatusCode[row.grpc], details, row.retry_seconds)
    logger.error("unexpected error", exc_info=error)
    return ErrorStatus(grpc.StatusCode.INTERNAL, "internal")
