"""Stores of tenants as a surface uses them: opened, written to, opened anew after a failure."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.engine import note_unreadable
from fleetcast.errors import StoreError, StoreFull, StoreUnreachable, TenantFull, refused
from fleetcast.metrics import Writes

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts import Identity
    from fleetcast.config import Settings
    from fleetcast.engine import Plane, RequestBody, WriteResult
    from fleetcast.surface.services import SurfaceServices

logger = logging.getLogger(__name__)


class TenantStores:
    """The stores behind one surface; records that it writes are counted for its `transport`."""

    def __init__(self, services: SurfaceServices, transport: str) -> None:
        self._engine = services.engine
        self._writes = Writes(services.counters, transport)
        self._process = transport

    def open(self, identity: Identity, request_id: str) -> Plane:
        """The open store of an account.

        Raises `Refused` (`tenant_unavailable`), and `StoreUnreachable` where no tenant's can be
        opened now.
        """
        try:
            return self._engine.plane(identity.account_id, identity.tenant_key)
        except StoreUnreachable:
            raise
        except StoreError as error:
            # The client learns nothing of this.
            logger.error(  # noqa: TRY400 - the message says all
                "store cannot be opened: %s", error, extra={"request_id": request_id}
            )
            raise refused("tenant_unavailable") from error

    def release(self, identity: Identity, plane: Plane | None, error: StoreError) -> None:
        """Has a store that failed opened anew by the next request; none where opening failed.

        A full disk passes, and so does an engine that is away.
        """
        if plane is not None and not isinstance(error, StoreFull | StoreUnreachable):
            self._engine.release(identity.account_id, plane)

    def write(
        self,
        write: Callable[..., WriteResult],
        body: bytes | RequestBody,
        identity: Identity,
        settings: Settings,
        *,
        records_max: int,
    ) -> WriteResult:
        """Writes one batch by a method of its plane. Raises `Refused`, `StoreError`."""
        try:
            result = write(body, **write_limits(settings, records_max))
        except TenantFull as refusal:
            self.count_full(identity, refusal)
            raise
        self.count(identity, result)
        return result

    def count(self, identity: Identity, result: WriteResult) -> None:
        """Counts a batch that was written."""
        self._writes.stored(
            identity.tenant_key,
            accepted=result.accepted_count,
            rejected=len(result.rejected_indices),
            clamped=result.clamped_count,
            commit_seconds=result.commit_seconds,
        )
        no_entity, other = result.no_entity_count, result.other_measurement_count
        if no_entity or other:
            self._writes.unreadable(
                identity.tenant_key, no_entity=no_entity, other_measurement=other
            )
            note_unreadable(identity.tenant_key, identity.key_id, self._process, result)

    def count_full(self, identity: Identity, refusal: TenantFull) -> None:
        """Counts a batch that was refused for the names it has."""
        self._writes.tenant_full(identity.tenant_key, refusal.bound)


def write_limits(settings: Settings, records_max: int) -> dict[str, int | None]:
    """Bounds that a plane takes with a batch, by the names that it has there."""
    return {
        "batch_records_max": records_max,
        "buffer_bytes_max": settings.ingest.queue_bytes_max,
        **settings.limits.of_batch,
    }
