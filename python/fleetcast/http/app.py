"""The Falcon application, put together by hand from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

from fleetcast.errors import StoreError, refused
from fleetcast.http.answers import encode, error_response
from fleetcast.http.headers import CONTENT_TYPE
from fleetcast.http.middleware import Middleware
from fleetcast.http.pipeline import Pipeline
from fleetcast.http.resources.account import AccountResource
from fleetcast.http.resources.health import LivenessResource, SubsystemResource
from fleetcast.http.resources.predictions import PredictionsResource
from fleetcast.http.resources.telemetry import TelemetryResource
from fleetcast.http.resources.topology import LatestResource, SeriesResource
from fleetcast.http.routes import ROUTES
from fleetcast.surface.stores import TenantStores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices

    App = falcon.App[falcon.Request, falcon.Response]


def create_app(services: HttpServices) -> App:
    """The WSGI application on top of what a worker has opened."""
    stores = TenantStores(services, "http")
    middleware = Middleware(services, Pipeline(services, stores))
    app = falcon.App(media_type=CONTENT_TYPE, middleware=[middleware])
    resources = _resources(services, stores)
    for path in ROUTES:
        app.add_route(path, resources[path])
    _handle_errors(app, middleware, stores, services.settings.store.backend)
    return app


def _resources(services: HttpServices, stores: TenantStores) -> Mapping[str, object]:
    """The resource of each path."""
    return {
        "/health": LivenessResource(),
        **{
            f"/health/{name}": SubsystemResource(services.probes.get(name, {}))
            for name in ("telemetry", "topology", "predictions")
        },
        "/telemetry": TelemetryResource(services.settings, stores),
        "/topology": LatestResource(services.simulate),
        "/topology/series": SeriesResource(services.settings),
        "/predictions": PredictionsResource(services),
        "/account/state": AccountResource(services),
    }


def _handle_errors(app: App, middleware: Middleware, stores: TenantStores, backend: str) -> None:
    """Has each exception become an answer; `backend` names the time-series store in it."""

    def handle(
        request: falcon.Request, response: falcon.Response, error: Exception, _params: object
    ) -> None:
        state: RequestState = request.context.state
        if isinstance(error, StoreError):
            stores.release(state.identity, getattr(state, "plane", None), error)
        answer = error_response(
            error, backend=backend, request_id=state.request_id, ingest=state.route.ingest
        )
        state.code = answer.code
        response.status = answer.status
        response.data = encode(answer.content)
        for name, value in answer.headers:
            response.set_header(name, value)

    def handle_falcon(
        request: falcon.Request, response: falcon.Response, _error: falcon.HTTPError, params: object
    ) -> None:
        # Falcon refuses only method names that it keeps for itself, before the pipeline runs.
        middleware.begin(request, response)
        handle(request, response, refused("method_not_allowed", allow="GET, POST"), params)

    app.add_error_handler(Exception, handle)
    app.add_error_handler(falcon.HTTPError, handle_falcon)
