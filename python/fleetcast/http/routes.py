"""The paths of a listener, as the engine lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import routes

if TYPE_CHECKING:
    from collections.abc import Mapping


class Route(NamedTuple):
    """A path, and the requirements of a request for it."""

    path: str
    allowed: list[str]
    """All methods that the path takes."""
    authenticated: bool
    scope: str | None
    """The scope that the key must have; `None` if any valid key will do."""
    ingest: bool
    """True for a write, which needs the entitlement and has a body."""
    codings: list[str]
    """Content codings that a body of another protocol may have."""

    @property
    def allow(self) -> str:
        """The value of the header field `Allow`. Example: `GET, HEAD, OPTIONS`."""
        return ", ".join(self.allowed)


def _by_path(*, is_adapters: bool) -> Mapping[str, Route]:
    found = (Route(*parts) for parts in routes(is_adapters))
    return {route.path: route for route in found}


NO_ROUTE = Route("other", [], authenticated=False, scope=None, ingest=False, codings=[])
ROUTES = _by_path(is_adapters=False)
"""Every path of the public listener; all other paths are 404."""
ADAPTER_ROUTES = _by_path(is_adapters=True)
"""Every path of the listener for other protocols."""
