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
        failure = request.env.get("fleetcast.failed")
        if failure is not None:  # the batch may be stored, so it must not be written once more
            raise failure
        state: RequestState = request.context.state
        return self._stores.write(
            partial(self._write, state, protocol, is_partial=is_partial),
            state.body,
            state.identity,
            self._settings,
            records_max=self._settings.adapters.records_max,
        )

    def note_stored(self, state: RequestState, protocol: str) -> None:
        """Has the front remember a write that was stored whole, if its body came as it is."""
        coding = state.request.get_header("Content-Encoding")
        if coding is None or coding.strip().lower() == "identity":
            state.adapted = self._mapping, protocol

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
