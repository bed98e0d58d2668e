"""Writes of one listener, counted for its `transport`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import note_unreadable
from fleetcast.errors import TenantFull
from fleetcast.metrics import Writes

if TYPE_CHECKING:
    import falcon

    from fleetcast.engine import WriteResult
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices


class Writing:
    """Writes the bodies of requests into the stores of their tenants."""

    def __init__(self, services: HttpServices, transport: str) -> None:
        self._service = services.service
        self._writes = Writes(services.counters, transport)
        self._process = transport

    def write(self, request: falcon.Request) -> WriteResult:
        """Writes the body of a request as one batch. Raises `Refused`, `StoreError`."""
        state: RequestState = request.context.state
        coding = request.get_header("Content-Encoding")
        state.body = self._service.content(state.body, coding)
        try:
            result = self._service.write(state.plane, state.path, request.query_string, state.body)
        except TenantFull as refusal:
            self._writes.tenant_full(state.identity.tenant.name, refusal.bound)
            raise
        tenant = state.identity.tenant.name
        self._writes.stored(tenant, result)
        if result.no_entity_count or result.other_measurement_count:
            note_unreadable(tenant, state.identity.key.key_id, self._process, result)
        return result
