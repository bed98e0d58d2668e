"""InfluxDB's three write paths: line protocol, its parameters, and the errors of each path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.adapters.explaining import dropped_of, reason, sentence, sentences
from fleetcast.engine import VERSION
from fleetcast.http.answers import encode
from fleetcast.surface.readiness import Dependencies, well

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import falcon

    from fleetcast.adapters.explaining import Dropped
    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.writing import Writing
    from fleetcast.surface.readiness import Probe

_JSON = "application/json"
_PING_SECONDS = 1.0
_BAD_REQUEST = 400
_CODES_V2 = {
    400: "invalid",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    405: "method not allowed",
    411: "length required",
    413: "request too large",
    415: "unsupported media type",
    422: "unprocessable entity",
    429: "too many requests",
    503: "unavailable",
}


def error_v1(answer: ErrorResponse) -> tuple[str, bytes]:
    """`{"error": …}`."""
    return _JSON, encode({"error": sentence(answer)})


def error_v2(answer: ErrorResponse) -> tuple[str, bytes]:
    """`{"code": …, "message": …}`."""
    code = _CODES_V2.get(answer.status, "internal error")
    return _JSON, encode({"code": code, "message": sentence(answer)})


def error_v3(answer: ErrorResponse) -> tuple[str, bytes]:
    """`{"error": …}`, with the faulty lines under `data` if there are any."""
    if answer.code == "schema_faults":
        data = [_line_v3(fault, None) for fault in dropped_of(answer.content)]
        return _JSON, encode({"error": "parsing failed for write_lp endpoint", "data": data})
    return error_v1(answer)


def partial_v1(dropped: Sequence[Dropped], count: int, _body: bytes) -> dict[str, object]:
    """Answer if some lines are faulty and all others were written."""
    return {"error": f"partial write: {sentences(dropped)} dropped={count}"}


def partial_v2(dropped: Sequence[Dropped], count: int, _body: bytes) -> dict[str, object]:
    """Answer as of `partial_v1`."""
    message = f"partial write: {sentences(dropped)} dropped={count}"
    return {"code": "invalid", "message": message, "line": dropped[0][0]}


def partial_v3(dropped: Sequence[Dropped], _count: int, body: bytes) -> dict[str, object]:
    """Answer as of `partial_v1`."""
    lines = body.split(b"\n")
    data = [_line_v3(fault, lines[fault[0] - 1]) for fault in dropped]
    return {"error": "partial write of line protocol occurred", "data": data}


class LinesResource:
    """A path that takes lines. 204 means that all lines are on disk, or queued as over HTTP.

    Faulty lines are left out and the answer is 400. The other lines are written, unless
    `accept_partial` is false.
    """

    def __init__(
        self,
        writing: Writing,
        described: Callable[[Sequence[Dropped], int, bytes], dict[str, object]],
    ) -> None:
        self._writing = writing
        self._described = described

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        written = self._writing.write(request)
        count = len(written.rejected_indices)
        if not count:
            response.status = 204
            return
        state: RequestState = request.context.state
        state.code = "invalid_input"
        response.status = _BAD_REQUEST
        response.data = encode(self._described(written.dropped, count, bytes(state.body)))


class PingResource:
    """204 whenever the process serves traffic; with `verbose`, 200 and the version."""

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answers without asking the stores."""
        response.set_header("X-Influxdb-Build", "fleetcast")
        response.set_header("X-Influxdb-Version", VERSION)
        if request.get_param("verbose", default="false") in {"", "false", "0"}:
            response.status = 204
        else:
            response.data = encode({"version": VERSION})

    on_head = on_get


class HealthResource:
    """200 if every dependency of a write answers in time, else 503."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._dependencies = Dependencies(probes)

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Asks all dependencies at the same time."""
        healthy = all(well(self._dependencies.ask(), _PING_SECONDS).values())
        response.status = 200 if healthy else 503
        status, message = ("pass", "ready for writes") if healthy else ("fail", "not ready")
        document = {"name": "fleetcast", "message": message, "status": status, "checks": []}
        response.data = encode({**document, "version": VERSION})

    on_head = on_get


def _line_v3(fault: Dropped, line: bytes | None) -> dict[str, object]:
    described: dict[str, object] = {"error_message": reason(fault), "line_number": fault[0]}
    if line is not None:
        described["original_line"] = line.decode(errors="replace").removesuffix("\r")
    return described
