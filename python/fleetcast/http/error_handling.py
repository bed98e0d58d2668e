"""Turns the exceptions of a request into answers, for every listener that serves HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

from fleetcast.errors import StoreError, refused
from fleetcast.http.answers import encode, error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.middleware import Middleware
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.routes import Route
    from fleetcast.surface.planes import TenantPlanes

    App = falcon.App[falcon.Request, falcon.Response]


def put_json(response: falcon.Response, _route: Route, answer: ErrorResponse) -> None:
    """Writes the body that the contract gives an error."""
    response.data = encode(answer.content)


def handle_errors(
    app: App,
    middleware: Middleware,
    planes: TenantPlanes,
    backend: str,
    put_body: Callable[[falcon.Response, Route, ErrorResponse], None],
) -> None:
    """Registers a handler that turns every exception into a response.

    `put_body` writes the body of the response. `backend` names the time-series store in it.
    """

    def handle(
        request: falcon.Request, response: falcon.Response, error: Exception, _params: object
    ) -> None:
        state: RequestState = request.context.state
        if isinstance(error, StoreError):
            planes.release(state.identity.tenant, getattr(state, "plane", None), error)
        answer = error_response(
            error, backend=backend, request_id=state.request_id, ingest=state.route.ingest
        )
        state.code = answer.code
        response.status = answer.status
        for name, value in answer.headers:
            response.set_header(name, value)
        put_body(response, state.route, answer)

    def handle_falcon(
        request: falcon.Request, response: falcon.Response, _error: falcon.HTTPError, params: object
    ) -> None:
        # Falcon refuses only method names that it keeps for itself, before the middleware runs.
        middleware.begin(request, response)
        handle(request, response, refused("method_not_allowed", allow="GET, POST"), params)

    app.add_error_handler(Exception, handle)
    app.add_error_handler(falcon.HTTPError, handle_falcon)
