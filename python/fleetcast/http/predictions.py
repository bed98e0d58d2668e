"""`GET /predictions`, on a service that serves none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.errors import refused

if TYPE_CHECKING:
    import falcon


class Predictions:
    """Refuses before it looks at a parameter (I1)."""

    def on_get(self, _request: falcon.Request, _response: falcon.Response) -> None:
        """Raises `Refused` (`predictions_not_enabled`)."""
        raise refused("predictions_not_enabled")

    on_head = on_get
