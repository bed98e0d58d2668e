"""One request on its way through the pipeline, with all that the stages have found out so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.http.headers import new_request_id
from fleetcast.http.routes import Route
from fleetcast.metrics.surfaces import OTHER

if TYPE_CHECKING:
    import falcon

    from fleetcast.accounts import Identity
    from fleetcast.engine import NameMapping, Plane, RequestBody

_NO_ROUTE = Route(methods=())


class RequestState:
    """State of one request. An attribute is there once the stage that sets it has passed.

    Falcon's context of the request holds it as `state`.
    """

    address: str
    """Address of the client, as far as limits care. Set by `count_request`."""
    path: str = OTHER
    route: Route = _NO_ROUTE
    """Set by `find_route`: the route, and how it is written."""
    code: str | None = None
    """Error code of the answer, if it is an error."""
    identity: Identity
    """Set by `check_key`, on authenticated routes."""
    plane: Plane
    """Set by `open_store`, on authenticated routes."""
    body: bytes | RequestBody
    """Set by `receive_body`, on ingest routes."""
    adapted: tuple[NameMapping, str] | None = None
    """Mapping and protocol of a body that was written whole as it came, by another protocol."""

    def __init__(self, request: falcon.Request, response: falcon.Response, began: float) -> None:
        self.request = request
        self.response = response
        self.began = began
        """Instant of `time.perf_counter`, in seconds."""
        self.request_id = new_request_id()
