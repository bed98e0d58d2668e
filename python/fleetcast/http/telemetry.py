"""`POST /telemetry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.http.answers import encode
from fleetcast.http.call import Call

if TYPE_CHECKING:
    import falcon

    from fleetcast.config import Settings


class Telemetry:
    """Writes one batch; 202 means that it is on disk."""

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.limits

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        call = Call.of(request)
        written = call.plane.write_json(
            call.body,
            batch_records_max=self._limits.batch_records_max,
            tags_max=self._limits.tags_max,
        )
        rejected = written.rejected_indices
        response.status = 202
        response.data = encode(
            {
                "write_id": written.write_id,
                "accepted_count": written.accepted_count,
                "rejected_count": len(rejected),
                "rejected_indices": rejected or None,
            }
        )
