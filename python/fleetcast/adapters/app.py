"""The Falcon application of the adapter listener, put together by hand from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

from fleetcast.adapters.arrow import ScanResource
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
from fleetcast.adapters.questions import (
    PATHS,
    READ_PATH,
    QuestionResource,
    RemoteReadResource,
)
from fleetcast.adapters.routes import ERRORS
from fleetcast.http.admission import Admission
from fleetcast.http.error_handling import handle_errors, put_json
from fleetcast.http.headers import CONTENT_TYPE
from fleetcast.http.middleware import Middleware
from fleetcast.http.routes import ADAPTER_ROUTES
from fleetcast.http.writing import Writing
from fleetcast.surface.planes import TenantPlanes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.routes import Route
    from fleetcast.http.services import HttpServices

    App = falcon.App[falcon.Request, falcon.Response]

PROCESS = "adapters"


def create_app(services: HttpServices) -> App:
    """Makes the WSGI application from the services that a worker has opened."""
    middleware = Middleware(services, Admission(services, ADAPTER_ROUTES), PROCESS)
    app = falcon.App(media_type=CONTENT_TYPE, middleware=[middleware])
    resources = _resources(services)
    for path in ADAPTER_ROUTES:
        app.add_route(path, resources[path])
    backend = services.settings.store.backend
    handle_errors(app, middleware, TenantPlanes(services), backend, _put_body)
    return app


def _resources(services: HttpServices) -> Mapping[str, object]:
    """Returns the resource of each path."""
    writing = Writing(services, PROCESS)
    return {
        "/ping": PingResource(),
        "/health": HealthResource(services.probes.get("telemetry", {})),
        "/write": LinesResource(writing, partial_v1),
        "/api/v2/write": LinesResource(writing, partial_v2),
        "/api/v3/write_lp": LinesResource(writing, partial_v3),
        "/api/v1/write": RemoteWriteResource(writing),
        "/v1/metrics": MetricsResource(writing),
        "/arrow/v1/scan": ScanResource(),
        **dict.fromkeys(PATHS, QuestionResource(services.service)),
        READ_PATH: RemoteReadResource(services.service),
    }


def _put_body(response: falcon.Response, route: Route, answer: ErrorResponse) -> None:
    """Writes the body of an error in the words of the path's protocol."""
    error = ERRORS.get(route.path)
    if error is None:
        put_json(response, route, answer)
        return
    response.content_type, response.data = error(answer)
    if answer.code == "schema_faults":  # the other protocols have no 422 for this code
        response.status = 400
    if answer.code == "unsupported_content_encoding":
        response.set_header("Accept-Encoding", ", ".join(route.codings))
