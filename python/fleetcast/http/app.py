"""The Falcon application, put together by hand from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

from fleetcast.errors import StoreError, StoreFull, refused
from fleetcast.http.accounting import Accounting, written_records
from fleetcast.http.answers import encode, error_response
from fleetcast.http.call import Call, Route
from fleetcast.http.cors import Cors
from fleetcast.http.headers import COMMON_HEADERS, CONTENT_TYPE, REQUEST_ID_HEADER, new_request_id
from fleetcast.http.pipeline import stages
from fleetcast.http.resources.account import AccountState
from fleetcast.http.resources.health import Liveness, Subsystem
from fleetcast.http.resources.predictions import Predictions
from fleetcast.http.resources.telemetry import Telemetry
from fleetcast.http.resources.topology import Latest, Series

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.services import HttpServices

_CONTINUE = 100
_OPEN = Route(methods=("GET",))

ROUTES: Mapping[str, Route] = {
    "/health": _OPEN,
    "/health/telemetry": _OPEN,
    "/health/topology": _OPEN,
    "/health/predictions": _OPEN,
    "/telemetry": Route(
        methods=("POST",), authenticated=True, scope="telemetry:write", ingest=True
    ),
    "/topology": Route(methods=("GET",), authenticated=True, scope="topology:read"),
    "/topology/series": Route(methods=("GET",), authenticated=True, scope="topology:read"),
    "/predictions": Route(methods=("GET",), authenticated=True, scope="predictions:read"),
    "/account/state": Route(methods=("GET",), authenticated=True),
}
"""Every path of the public listener; all others are 404."""


def create_app(services: HttpServices) -> falcon.App[falcon.Request, falcon.Response]:
    """The WSGI application on top of what a worker has opened."""
    app = falcon.App(media_type=CONTENT_TYPE, middleware=[_Pipeline(services)])
    handlers = {
        "/health": Liveness(),
        "/telemetry": Telemetry(services.settings, written_records(services)),
        "/topology": Latest(services.simulate),
        "/topology/series": Series(services.settings),
        "/predictions": Predictions(services),
        "/account/state": AccountState(services),
    }
    for name in ("telemetry", "topology", "predictions"):
        handlers[f"/health/{name}"] = Subsystem(name, services.probes.get(name, {}))
    for path in ROUTES:
        app.add_route(path, handlers[path])
    backend = services.settings.store.backend

    def handle(
        request: falcon.Request, response: falcon.Response, error: Exception, _params: object
    ) -> None:
        call = getattr(request.context, "call", None)
        request_id = new_request_id() if call is None else call.request_id
        if call is not None and isinstance(error, StoreError):
            _release(services, call, error)
        ingest = call is not None and call.route.ingest
        answer = error_response(error, backend=backend, request_id=request_id, ingest=ingest)
        if call is not None:
            call.code = answer.code
        _send(response, answer)

    def handle_falcon(
        request: falcon.Request, response: falcon.Response, _error: falcon.HTTPError, params: object
    ) -> None:
        # Falcon refuses only method names that it keeps for itself, before the pipeline runs.
        handle(request, response, refused("method_not_allowed", allow="GET, POST"), params)

    app.add_error_handler(Exception, handle)
    app.add_error_handler(falcon.HTTPError, handle_falcon)
    return app


class _Pipeline:
    """Runs the stages before a handler, and dresses every answer."""

    def __init__(self, services: HttpServices) -> None:
        self._accounting = Accounting(services)
        self._stages = stages(services, ROUTES)
        self._cors = Cors(services.settings.http.cors_origins)

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        call = Call(request, response, new_request_id())
        request.context.began = self._accounting.begin()
        request.context.call = call
        for stage in self._stages:
            stage(call)
            if response.complete:
                return

    def process_response(
        self,
        request: falcon.Request,
        response: falcon.Response,
        _resource: object,
        _succeeded: bool,  # noqa: FBT001 - Falcon's signature
    ) -> None:
        call = getattr(request.context, "call", None)
        for name, value in COMMON_HEADERS:
            response.set_header(name, value)
        request_id = new_request_id() if call is None else call.request_id
        response.set_header(REQUEST_ID_HEADER, request_id)
        self._cors.apply(request, response)
        began = getattr(request.context, "began", None)
        if response.status_code == _CONTINUE:
            self._accounting.interrupt()
            request.context.call = None
            return
        began = self._accounting.begin() if began is None else began
        self._accounting.end(began, request_id, call, request, response)
        # They know each other; without this their bodies would wait for the garbage collector.
        request.context.call = None


def _release(services: HttpServices, call: Call, error: StoreError) -> None:
    """Has a store that failed opened anew by the next request; a full disk needs no such thing."""
    if not isinstance(error, StoreFull):
        services.engine.release(call.identity.account_id, call.plane)


def _send(response: falcon.Response, answer: ErrorResponse) -> None:
    response.status = answer.status
    response.data = encode(answer.content)
    for name, value in answer.headers:
        response.set_header(name, value)
