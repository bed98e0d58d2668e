"""`GET /account/state`: the caller's own limits, entitlements and usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import format_time
from fleetcast.http.answers import encode

if TYPE_CHECKING:
    import falcon

    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices


_NS_PER_SECOND = 1_000_000_000


class AccountResource:
    """Answers any valid key."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `StoreError`, `ControlStoreUnavailable`."""
        state: RequestState = request.context.state
        tenant, key = state.identity.tenant, state.identity.key
        limits = self._services.settings.limits
        stats = state.plane.stats()
        requests_total = self._services.requests_total(tenant.account_id)
        response.data = encode(
            {
                "tenant_key": tenant.name,
                "account_id": tenant.account_id,
                "environment": key.environment,
                "plan": tenant.plan,
                "status": tenant.status,
                "scopes": sorted(key.scopes),
                "entitlements": {
                    "live_ingest": tenant.live_ingest,
                    "predictions": list(self._services.families),
                },
                "limits": {
                    "requests_per_minute": limits.requests_per_minute,
                    "batch_records_max": limits.batch_records_max,
                    "body_bytes_max": limits.body_bytes_max,
                    **limits.of_batch,
                    "point_budget": limits.point_budget,
                    "answer_values_max": limits.answer_values_max,
                    "history_horizon_days": limits.history_horizon_days,
                    "raw_span_seconds": limits.raw_span_seconds,
                    "link_ids_max": limits.link_ids_max,
                },
                "usage": {
                    "records_accepted_total": stats.rows,
                    "records_rejected_total": stats.rejected,
                    "requests_total": requests_total,
                    "storage_bytes": stats.stored_bytes,
                    "series_count": stats.series,
                    "period_start": format_time(tenant.created_at * _NS_PER_SECOND),
                },
                "as_of_utc": format_time(self._services.clock()),
            }
        )

    on_head = on_get
