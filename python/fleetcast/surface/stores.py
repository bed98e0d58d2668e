"""Stores of tenants as a surface uses them: opened, and opened anew after a failure."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError, StoreFull, StoreUnreachable, refused

if TYPE_CHECKING:
    from fleetcast.accounts import Identity
    from fleetcast.config import Settings
    from fleetcast.engine import Plane
    from fleetcast.surface.services import SurfaceServices

logger = logging.getLogger(__name__)


class TenantStores:
    """The stores behind one surface."""

    def __init__(self, services: SurfaceServices) -> None:
        self._engine = services.engine

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


def write_limits(settings: Settings, records_max: int) -> dict[str, int | None]:
    """Bounds that a plane takes with a batch, by the names that it has there."""
    return {
        "batch_records_max": records_max,
        "buffer_bytes_max": settings.ingest.queue_bytes_max,
        **settings.limits.of_batch,
    }
