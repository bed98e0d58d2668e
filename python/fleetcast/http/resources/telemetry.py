"""`POST /telemetry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import falcon

    from fleetcast.http.writing import Writing


class TelemetryResource:
    """Writes one batch. 202 means that the batch is on disk, or queued in asynchronous mode."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        response.data = self._writing.write(request).answer()
        response.status = 202
