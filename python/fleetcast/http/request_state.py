"""The state of one request while it is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.http.headers import new_request_id
from fleetcast.http.routes import NO_ROUTE
from fleetcast.metrics.surfaces import OTHER

if TYPE_CHECKING:
    import falcon

    from fleetcast.engine import Identity, Piece, Plane
    from fleetcast.http.routes import Route


class RequestState:
    """The state of one request. An attribute is set once it is known.

    Falcon's context of the request holds this object as `state`.
    """

    address: str
    """Address of the client, as the limits count it."""
    path: str = OTHER
    route: Route = NO_ROUTE
    """The route of `path`."""
    code: str | None = None
    """Error code of the answer, if it is an error."""
    identity: Identity
    """Set on authenticated routes."""
    plane: Plane
    """Set on authenticated routes."""
    body: bytes | Piece
    """Set on routes that take a body."""

    def __init__(self, request: falcon.Request, response: falcon.Response, began: float) -> None:
        self.request = request
        self.response = response
        self.began = began
        """Instant of `time.perf_counter`, in seconds."""
        self.request_id = new_request_id()
