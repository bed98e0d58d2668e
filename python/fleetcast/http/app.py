"""The Falcon application, put together by hand from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

from fleetcast.http.admission import Admission
from fleetcast.http.error_handling import handle_errors, put_json
from fleetcast.http.headers import CONTENT_TYPE
from fleetcast.http.middleware import Middleware
from fleetcast.http.resources.account import AccountResource
from fleetcast.http.resources.health import SubsystemResource
from fleetcast.http.resources.predictions import PredictionsResource
from fleetcast.http.resources.telemetry import TelemetryResource
from fleetcast.http.resources.topology import LatestResource, SeriesResource
from fleetcast.http.routes import ROUTES
from fleetcast.http.writing import Writing
from fleetcast.surface.planes import TenantPlanes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.routes import Route
    from fleetcast.http.services import HttpServices

    App = falcon.App[falcon.Request, falcon.Response]


def create_app(services: HttpServices) -> App:
    """Returns the WSGI application over the parts that a worker has opened."""
    return app_of(services, "http", ROUTES, _resources(services), put_json)


def app_of(
    services: HttpServices,
    process: str,
    routes: Mapping[str, Route],
    resources: Mapping[str, object],
    put_body: Callable[[falcon.Response, Route, ErrorResponse], None],
) -> App:
    """Returns the WSGI application of a listener. `put_body` writes the body of an error."""
    middleware = Middleware(services, Admission(services, routes), process)
    app = falcon.App(media_type=CONTENT_TYPE, middleware=[middleware])
    for path in routes:
        app.add_route(path, resources[path])
    backend = services.settings.store.backend
    handle_errors(app, middleware, TenantPlanes(services.engine), backend, put_body)
    return app


def _resources(services: HttpServices) -> Mapping[str, object]:
    """The resource of each path."""
    return {
        "/health": SubsystemResource({}),
        **{
            f"/health/{name}": SubsystemResource(services.probes.get(name, {}))
            for name in ("telemetry", "topology", "predictions")
        },
        "/telemetry": TelemetryResource(Writing(services, "http")),
        "/topology": LatestResource(services.service, services.simulate),
        "/topology/series": SeriesResource(services.service),
        "/predictions": PredictionsResource(services),
        "/account/state": AccountResource(services),
    }
