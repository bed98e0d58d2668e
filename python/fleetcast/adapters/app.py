"""The Falcon application of the adapter listener, put together by hand from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

from fleetcast.adapters.influx import (
    HealthResource,
    LinesResource,
    PingResource,
    partial_v1,
    partial_v2,
    partial_v3,
)
from fleetcast.adapters.otlp import MetricsResource
from fleetcast.adapters.prometheus import RemoteWriteResource
from fleetcast.adapters.routes import ERRORS
from fleetcast.adapters.unpacking import unpacked
from fleetcast.adapters.writing import Writing
from fleetcast.http.admission import Admission
from fleetcast.http.error_handling import handle_errors, put_json
from fleetcast.http.headers import CONTENT_TYPE
from fleetcast.http.middleware import Middleware
from fleetcast.http.routes import ADAPTER_ROUTES
from fleetcast.surface.stores import TenantStores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.engine import NameMapping, RequestBody
    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.routes import Route
    from fleetcast.http.services import HttpServices

    App = falcon.App[falcon.Request, falcon.Response]

PROCESS = "adapters"


def create_app(services: HttpServices, mapping: NameMapping) -> App:
    """The WSGI application on top of what a worker has opened."""
    stores = TenantStores(services, PROCESS)
    bytes_max = services.settings.adapters.body_bytes_max

    def content(state: RequestState, body: bytes | RequestBody) -> bytes | RequestBody:
        return unpacked(body, state.request.get_header("Content-Encoding"), bytes_max)

    admission = Admission(services, ADAPTER_ROUTES, content)
    middleware = Middleware(services, admission, PROCESS)
    app = falcon.App(media_type=CONTENT_TYPE, middleware=[middleware])
    resources = _resources(services, stores, mapping)
    for path in ADAPTER_ROUTES:
        app.add_route(path, resources[path])
    handle_errors(app, middleware, stores, services.settings.store.backend, _put_body)
    return app


def _resources(
    services: HttpServices, stores: TenantStores, mapping: NameMapping
) -> Mapping[str, object]:
    """The resource of each path."""
    writing = Writing(services.settings, stores, mapping)
    return {
        "/ping": PingResource(),
        "/health": HealthResource(services.probes.get("telemetry", {})),
        "/write": LinesResource(writing, 1, partial_v1),
        "/api/v2/write": LinesResource(writing, 2, partial_v2),
        "/api/v3/write_lp": LinesResource(writing, 3, partial_v3),
        "/api/v1/write": RemoteWriteResource(writing),
        "/v1/metrics": MetricsResource(writing),
    }


def _put_body(response: falcon.Response, route: Route, answer: ErrorResponse) -> None:
    """The body of an error in the words of its path."""
    error = ERRORS.get(route.path)
    if error is None:
        put_json(response, route, answer)
        return
    response.content_type, response.data = error(answer)
    if answer.code == "schema_faults":  # no protocol but ours has 422 for it
        response.status = 400
    if answer.code == "unsupported_content_encoding":
        response.set_header("Accept-Encoding", ", ".join(route.codings))
