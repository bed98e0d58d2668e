"""`POST /telemetry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.errors import TenantFull
from fleetcast.http.answers import encode
from fleetcast.http.call import Call

if TYPE_CHECKING:
    import falcon

    from fleetcast.config import Settings
    from fleetcast.metrics import Writes


class Telemetry:
    """Writes one batch; 202 means that it is on disk, or queued in asynchronous mode."""

    def __init__(self, settings: Settings, writes: Writes) -> None:
        self._limits = settings.limits
        self._queue_bytes_max = settings.ingest.queue_bytes_max
        self._writes = writes

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        call = Call.of(request)
        try:
            written = call.plane.write_json(
                call.body,
                batch_records_max=self._limits.batch_records_max,
                buffer_bytes_max=self._queue_bytes_max,
                **self._limits.of_batch,
            )
        except TenantFull as refusal:
            self._writes.tenant_full(call.identity.tenant_key, refusal)
            raise
        rejected = written.rejected_indices
        self._writes.stored(
            call.identity.tenant_key,
            accepted=written.accepted_count,
            rejected=len(rejected),
            clamped=written.clamped_count,
            commit_seconds=written.commit_seconds,
        )
        response.status = 202
        response.data = encode(
            {
                "write_id": written.write_id,
                "accepted_count": written.accepted_count,
                "rejected_count": len(rejected),
                "rejected_indices": rejected or None,
            }
        )
