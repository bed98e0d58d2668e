"""Cross-origin headers, for the origins on the list alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    import falcon


class Cors:
    """Grants to origins on the list. Errors carry them too, or no browser could read them."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)

    def apply(self, request: falcon.Request, response: falcon.Response) -> None:
        """Adds the headers that the request's origin has earned."""
        if not self._origins:
            return
        response.append_header("Vary", "Origin")
        origin = request.get_header("Origin")
        if origin not in self._origins:
            return
        response.set_header("Access-Control-Allow-Origin", origin)
        response.set_header("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
        allow = response.get_header("Allow")
        if request.method == "OPTIONS" and allow is not None:
            response.set_header("Access-Control-Allow-Methods", allow)
            response.set_header("Access-Control-Allow-Headers", "x-api-key, content-type")
