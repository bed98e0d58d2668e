"""Planes of tenants as a surface uses them: opened, and opened again after a failure."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetcast.errors import StoreError, StoreFull, StoreUnreachable, refused

if TYPE_CHECKING:
    from fleetcast.config import Settings
    from fleetcast.engine import Engine, Plane, Tenant

logger = logging.getLogger(__name__)


class TenantPlanes:
    """The planes behind one surface."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def open(self, tenant: Tenant, request_id: str) -> Plane:
        """Returns the open store of an account.

        Raises `Refused` (`tenant_unavailable`). Raises `StoreUnreachable` if no tenant's store can
        be opened now.
        """
        try:
            return self._engine.plane(tenant.account_id, tenant.name)
        except StoreUnreachable:
            raise
        except StoreError as error:
            # The client does not learn of this error.
            logger.error(  # noqa: TRY400 - the message says all
                "store cannot be opened: %s", error, extra={"request_id": request_id}
            )
            raise refused("tenant_unavailable") from error

    def release(self, tenant: Tenant, plane: Plane | None, error: StoreError) -> None:
        """Closes a store that failed, so that the next request opens it again.

        A store that failed to open has no plane to close. A full disk and a database that cannot be
        reached are passing faults, after which the store stays open.
        """
        if plane is not None and not isinstance(error, StoreFull | StoreUnreachable):
            self._engine.release(tenant.account_id, plane)


def write_limits(settings: Settings, records_max: int) -> dict[str, object]:
    """Bounds that a plane takes with a batch, by the plane's names for them."""
    return {
        "batch_records_max": records_max,
        "buffer_bytes_max": settings.ingest.queue_bytes_max,
        **settings.limits.of_batch,
    }
