"""`POST /telemetry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import falcon

    from fleetcast.config import Settings
    from fleetcast.http.request_state import RequestState
    from fleetcast.surface.stores import TenantStores


class TelemetryResource:
    """Writes one batch; 202 means that it is on disk, or queued in asynchronous mode."""

    def __init__(self, settings: Settings, stores: TenantStores) -> None:
        self._settings = settings
        self._stores = stores

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        state: RequestState = request.context.state
        settings = self._settings
        written = self._stores.write(
            state.plane.write_json,
            state.body,
            state.identity,
            settings,
            records_max=settings.limits.batch_records_max,
        )
        response.status = 202
        response.data = written.answer()
