"""The paths of the public listener, and how the pipeline treats a request for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Route:
    """Facts about a path that the pipeline needs before its handler runs."""

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


_OPEN = Route(methods=("GET",))

ROUTES: Mapping[str, Route] = {
    "/health": _OPEN,
    "/health/telemetry": _OPEN,
    "/health/topology": _OPEN,
    "/health/predictions": _OPEN,
    "/telemetry": Route(
        methods=("POST",), authenticated=True, scope="telemetry:write", ingest=True
    ),
    "/topology": Route(methods=("GET",), authenticated=True, scope="topology:read"),
    "/topology/series": Route(methods=("GET",), authenticated=True, scope="topology:read"),
    "/predictions": Route(methods=("GET",), authenticated=True, scope="predictions:read"),
    "/account/state": Route(methods=("GET",), authenticated=True),
}
"""Every path of the public listener; all others are 404."""
