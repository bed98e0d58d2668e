"""The paths of a listener, as the engine has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import routes

if TYPE_CHECKING:
    from collections.abc import Mapping


class Route(NamedTuple):
    """A path, and what a request for it needs."""

    path: str
    allowed: list[str]
    """All methods."""
    authenticated: bool
    scope: str | None
    """Needed of the key; `None` if any valid key will do."""
    ingest: bool
    """A write: needs the entitlement, and has a body."""
    codings: list[str]
    """Content codings that a body of another protocol may have."""

    @property
    def allow(self) -> str:
        """The value of `Allow`."""
        return ", ".join(self.allowed)


def _by_path(*, is_adapters: bool) -> Mapping[str, Route]:
    found = (Route(*parts) for parts in routes(is_adapters))
    return {route.path: route for route in found}


NO_ROUTE = Route("other", [], authenticated=False, scope=None, ingest=False, codings=[])
ROUTES = _by_path(is_adapters=False)
"""Every path of the public listener; all others are 404."""
ADAPTER_ROUTES = _by_path(is_adapters=True)
"""Every path of the listener for other protocols."""
