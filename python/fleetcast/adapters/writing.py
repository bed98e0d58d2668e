"""One write by another protocol, as every path of the listener does it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from fleetcast.config import Settings
    from fleetcast.engine import NameMapping, RequestBody, WriteResult
    from fleetcast.http.request_state import RequestState
    from fleetcast.surface.stores import TenantStores


class Writing:
    """Bodies into the stores of their tenants, under the names of a mapping."""

    def __init__(self, settings: Settings, stores: TenantStores, mapping: NameMapping) -> None:
        self._settings = settings
        self._stores = stores
        self._mapping = mapping

    def write(
        self, request: falcon.Request, protocol: str, *, is_partial: bool = True
    ) -> WriteResult:
        """Writes the body of a request as one batch. Raises `Refused`, `StoreError`."""
        state: RequestState = request.context.state
        return self._stores.write(
            partial(self._write, state, protocol, is_partial=is_partial),
            state.body,
            state.identity,
            self._settings,
            records_max=self._settings.adapters.records_max,
        )

    def _write(
        self,
        state: RequestState,
        protocol: str,
        body: bytes | RequestBody,
        *,
        is_partial: bool,
        **limits: int | None,
    ) -> WriteResult:
        write: Callable[..., WriteResult] = partial(
            self._mapping.write, state.plane, protocol, body, is_partial=is_partial
        )
        return write(**limits)
