"""Verdicts about writes, handed to the front so that it need not ask again for a moment.

A verdict says that a request like this one, with the same method, target, peer and
`DECIDING_FIELDS`, may be written to that plane, by whom and within which bounds. The front serves
such requests by itself for as long as what the verdict rests on is as it was: the last change of
the control store, the settings in force, the files of the plane, the end of the key, and for ten
seconds at most. Whatever it cannot answer with 202 comes here, so no rule of the pipeline is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.metrics import Requests, Writes
from fleetcast.surface.stores import Source, write_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleetcast.engine import Limiter, NameMapping, Plane
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.services import HttpServices
    from fleetcast.log_lines import Served
    from fleetcast.metrics.surfaces import RequestIndexes, WriteIndexes
    from fleetcast.slots import Files


class WriteVerdict(NamedTuple):
    """All that the front needs to serve a write, and what that rests on."""

    plane: Plane
    folder: str
    files: Files | None
    write_limits: Mapping[str, int | None]
    body_bytes_max: int
    account_id: str
    control_transaction: int
    key_expires_at: int | None
    rates: Limiter | None
    lockouts: Limiter | None
    client: str
    request_indexes: RequestIndexes
    write_indexes: WriteIndexes
    adapted: tuple[NameMapping, str] | None
    """Mapping and protocol of the body, where it is not JSON."""
    line: tuple[str, ...]
    """Texts of the access log between what differs from request to request."""
    source: Source


class Remembering:
    """Makes verdicts of writes that were stored; their records are counted for `transport`."""

    def __init__(self, services: HttpServices, transport: str) -> None:
        self._engine = services.engine
        self._limiter = services.limiter
        self._settings = services.settings
        counters = services.front_counters
        self._books = (
            None if counters is None else (Requests(counters, "http"), Writes(counters, transport))
        )

    def note(self, state: RequestState, served: Served) -> None:
        """Hands over the verdict about a write, if the front wants one and all of it is known."""
        remember: Callable[[WriteVerdict], None] | None
        remember = state.request.env.get("fleetcast.remember")
        if remember is None or self._books is None:
            return
        requests, writes = self._books
        identity, settings = state.identity, self._settings
        limited = self._limiter.limited(state.address)
        opened = self._engine.files(identity.account_id, state.plane)
        if limited is None or opened is None or identity.control_transaction is None:
            return
        folder, files = opened
        limits = settings.limits
        if state.adapted is None:
            records_max, body_bytes_max = limits.batch_records_max, limits.body_bytes_max
        else:
            adapters = settings.adapters
            records_max, body_bytes_max = adapters.records_max, adapters.body_bytes_max
        remember(
            WriteVerdict(
                plane=state.plane,
                folder=folder,
                files=files,
                write_limits=write_limits(settings, records_max),
                body_bytes_max=body_bytes_max,
                account_id=identity.account_id,
                control_transaction=identity.control_transaction,
                key_expires_at=identity.key_expires_at,
                rates=limited.rates,
                lockouts=limited.lockouts,
                client=limited.address,
                request_indexes=requests.indexes(
                    served.method, served.route, served.status, identity.account_id
                ),
                write_indexes=writes.indexes(identity.tenant_key),
                adapted=state.adapted,
                line=served.texts(),
                source=Source(identity.tenant_key, identity.key_id, served.process),
            )
        )
