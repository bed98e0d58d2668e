"""Prometheus' HTTP API: the engine reads parameters, evaluates and makes answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fleetcast.adapters.explaining import sentence
from fleetcast.http.answers import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    import falcon

    from fleetcast.engine import Service
    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.request_state import RequestState

PATHS = (
    "/api/v1/query",
    "/api/v1/query_range",
    "/api/v1/series",
    "/api/v1/labels",
    "/api/v1/label/{name}/values",
    "/api/v1/metadata",
    "/api/v1/status/buildinfo",
)
READ_PATH = "/api/v1/read"
_JSON = "application/json"
_MESSAGE = "application/x-protobuf"
_KINDS = {404: "not_found", 500: "internal", 503: "unavailable"}


def error(answer: ErrorResponse) -> tuple[str, bytes]:
    """An error in the form of Prometheus."""
    kind = _KINDS.get(answer.status, "bad_data")
    document = {"status": "error", "errorType": kind, "error": sentence(answer)}
    return _JSON, encode(document)


class QuestionResource:
    """A path that answers from samples. A query that is refused has an answer of the engine."""

    def __init__(self, service: Service) -> None:
        self._ask = service.ask

    def on_get(
        self, request: falcon.Request, response: falcon.Response, name: str | None = None
    ) -> None:
        """Raises `StoreError`. The path of the request has the `name` already."""
        del name
        state: RequestState = request.context.state
        status, state.code, pieces = self._ask(
            state.plane, request.path, request.query_string, state.body
        )
        response.status = status
        response.stream = cast("Iterable[bytes]", pieces)
        response.content_length = sum(map(len, pieces))

    on_head = on_get
    on_post = on_get


class RemoteReadResource:
    """Samples for another Prometheus, as one message in snappy or as frames of chunks."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        state: RequestState = request.context.state
        message = self._service.content(state.body, request.get_header("Content-Encoding"))
        content_type, parts = self._service.read(state.plane, message)
        status, state.code, pieces = parts
        response.status = status
        response.content_type = content_type
        if content_type == _MESSAGE:
            response.set_header("Content-Encoding", "snappy")
        response.stream = cast("Iterable[bytes]", pieces)
        response.content_length = sum(map(len, pieces))
