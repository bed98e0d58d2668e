"""Metrics of OpenTelemetry over HTTP: messages in protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.adapters.explaining import reason, sentence
from fleetcast.protobuf import delimited, integer

if TYPE_CHECKING:
    import falcon

    from fleetcast.adapters.explaining import Dropped
    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.writing import Writing

MEDIA_TYPE = "application/x-protobuf"

_REJECTED, _MESSAGE, _PARTIAL_SUCCESS = 1, 2, 1
# Codes of google.rpc.Code by HTTP status.
_CODES = {
    400: 3,
    401: 16,
    403: 7,
    404: 5,
    405: 12,
    413: 8,
    415: 3,
    422: 3,
    429: 8,
    500: 13,
    503: 14,
}
_UNKNOWN = 2
_KINDS = "exponential histograms and summaries are not stored"


def error(answer: ErrorResponse) -> tuple[str, bytes]:
    """A `google.rpc.Status`."""
    code = _CODES.get(answer.status, _UNKNOWN)
    return MEDIA_TYPE, integer(1, code) + delimited(2, sentence(answer))


class MetricsResource:
    """200 means that the data points are on disk, or queued as over HTTP.

    The answer counts the rejected data points, which are not stored.
    """

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        written = self._writing.write(request)
        response.content_type = MEDIA_TYPE
        response.data = b""
        count = len(written.rejected_indices)
        if count:
            state: RequestState = request.context.state
            state.code = "invalid_input"
            message = "; ".join(map(_point, written.dropped))
            partial = integer(_REJECTED, count) + delimited(_MESSAGE, message)
            response.data = delimited(_PARTIAL_SUCCESS, partial)


def _point(fault: Dropped) -> str:
    number, code, metric, message = fault
    if code == "field_value_type":
        return f"data point {number}: {metric}: {_KINDS}"
    return f"data point {number}: {reason((number, code, metric, message))}"
