"""The Falcon application of the adapter listener, put together by hand from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

from fleetcast.adapters.influx import (
    UNITS_V1,
    UNITS_V2,
    UNITS_V3,
    HealthResource,
    LinesResource,
    PingResource,
    partial_v1,
    partial_v2,
    partial_v3,
)
from fleetcast.adapters.otlp import MetricsResource
from fleetcast.adapters.pipeline import AdapterPipeline
from fleetcast.adapters.prometheus import RemoteWriteResource
from fleetcast.adapters.routes import ROUTES, AdapterRoute
from fleetcast.adapters.writing import Writing
from fleetcast.errors import StoreError, refused
from fleetcast.http.answers import encode, error_response
from fleetcast.http.headers import CONTENT_TYPE
from fleetcast.http.middleware import Middleware
from fleetcast.surface.stores import TenantStores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.engine import NameMapping
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices

    App = falcon.App[falcon.Request, falcon.Response]

PROCESS = "adapters"


def create_app(services: HttpServices, mapping: NameMapping) -> App:
    """The WSGI application on top of what a worker has opened."""
    stores = TenantStores(services, PROCESS)
    middleware = Middleware(services, AdapterPipeline(services, stores), PROCESS)
    app = falcon.App(media_type=CONTENT_TYPE, middleware=[middleware])
    resources = _resources(services, stores, mapping)
    for path in ROUTES:
        app.add_route(path, resources[path])
    _handle_errors(app, middleware, stores, services.settings.store.backend)
    return app


def _resources(
    services: HttpServices, stores: TenantStores, mapping: NameMapping
) -> Mapping[str, object]:
    """The resource of each path."""
    writing = Writing(services.settings, stores, mapping)
    return {
        "/ping": PingResource(),
        "/health": HealthResource(services.probes.get("telemetry", {})),
        "/write": LinesResource(writing, UNITS_V1, partial_v1),
        "/api/v2/write": LinesResource(writing, UNITS_V2, partial_v2),
        "/api/v3/write_lp": LinesResource(writing, UNITS_V3, partial_v3),
        "/api/v1/write": RemoteWriteResource(writing),
        "/v1/metrics": MetricsResource(writing),
    }


def _handle_errors(app: App, middleware: Middleware, stores: TenantStores, backend: str) -> None:
    """Has each exception become an answer in the words of its path."""

    def handle(
        request: falcon.Request, response: falcon.Response, error: Exception, _params: object
    ) -> None:
        state: RequestState = request.context.state
        if isinstance(error, StoreError):
            stores.release(state.identity, getattr(state, "plane", None), error)
        route = state.route
        answer = error_response(
            error, backend=backend, request_id=state.request_id, ingest=route.ingest
        )
        state.code = answer.code
        response.status = answer.status
        if isinstance(route, AdapterRoute):
            response.content_type, response.data = route.error(answer)
            if answer.code == "schema_faults":  # no protocol but ours has 422 for it
                response.status = 400
        else:
            response.data = encode(answer.content)
        for name, value in answer.headers:
            response.set_header(name, value)
        if isinstance(route, AdapterRoute) and answer.code == "unsupported_content_encoding":
            response.set_header("Accept-Encoding", ", ".join(route.codings))

    def handle_falcon(
        request: falcon.Request, response: falcon.Response, _error: falcon.HTTPError, params: object
    ) -> None:
        # Falcon refuses only method names that it keeps for itself, before the pipeline runs.
        middleware.begin(request, response)
        handle(request, response, refused("method_not_allowed", allow="GET, POST"), params)

    app.add_error_handler(Exception, handle)
    app.add_error_handler(falcon.HTTPError, handle_falcon)
