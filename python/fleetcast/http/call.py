"""One request on its way through the pipeline: what the stages have found out so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import falcon

    from fleetcast.accounts import Identity
    from fleetcast.engine import Plane


@dataclass(frozen=True, kw_only=True)
class Route:
    """What the pipeline needs to know of a path before its handler runs."""

    methods: tuple[str, ...]
    """Without HEAD and OPTIONS, which follow from them."""
    authenticated: bool = False
    scope: str | None = None
    """Needed of the key; `None` where any valid key will do."""
    ingest: bool = False
    """A write: needs the entitlement, and has a body."""

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """The methods, with those that follow."""
        return (*self.methods, *(("HEAD",) if "GET" in self.methods else ()), "OPTIONS")

    @property
    def allow(self) -> str:
        """The value of `Allow`."""
        return ", ".join(self.allowed)


class Call:
    """State of one request. An attribute is there once the stage that sets it has passed."""

    address: str
    """Where the client speaks from, as far as the limits care. Set by `RateLimit`."""
    path: str
    route: Route = Route(methods=())
    """Set by `Routing`: the route, and how it is written."""
    code: str | None = None
    """Of the error that the answer tells of, if it does."""
    identity: Identity
    """Set by `Key`, on authenticated routes."""
    plane: Plane
    """Set by `Tenant`, on authenticated routes."""
    body: bytes
    """Set by `Body`, on ingest routes."""

    def __init__(self, request: falcon.Request, response: falcon.Response, request_id: str) -> None:
        self.request = request
        self.response = response
        self.request_id = request_id

    @staticmethod
    def of(request: falcon.Request) -> Call:
        """The call that the pipeline has made of a request."""
        call = request.context.call
        assert isinstance(call, Call)  # noqa: S101 - the pipeline runs before any handler
        return call
