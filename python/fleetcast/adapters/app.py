"""The Falcon application of the adapter listener, put together by hand from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from fleetcast.adapters.risk import RiskResource
from fleetcast.adapters.routes import ERRORS
from fleetcast.http.app import app_of
from fleetcast.http.error_handling import put_json
from fleetcast.http.routes import ADAPTER_ROUTES
from fleetcast.http.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import falcon

    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.app import App
    from fleetcast.http.routes import Route
    from fleetcast.http.services import HttpServices

PROCESS = "adapters"


def create_app(services: HttpServices) -> App:
    """Makes the WSGI application from the services that a worker has opened."""
    return app_of(services, PROCESS, ADAPTER_ROUTES, _resources(services), _put_body)


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
        "/forecasts/v1/risk": RiskResource(services),
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
