"""What keeps every tenant's store in shape while it is served: compaction and retention."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import StoreError
from fleetcast.metrics import sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts import ControlStore, Tenant
    from fleetcast.engine import Engine
    from fleetcast.metrics import Counters

_RETRY_SECONDS = 30.0  # a store that fails is left alone for so long

logger = structlog.get_logger(__name__)


class Maintenance:
    """Looks after the stores of all tenants. `after_seconds` is how old the log may get."""

    def __init__(
        self,
        store: ControlStore,
        engine: Engine,
        counters: Counters,
        after_seconds: Callable[[], int],
    ) -> None:
        self._store = store
        self._engine = engine
        self._counters = counters
        self._after_seconds = after_seconds
        self._written = counters.counter(sample("fleetcast_compaction_bytes_total"))
        self._failed = counters.counter(sample("fleetcast_compaction_failed_total"))
        self._retry_at: dict[str, float] = {}
        self._known: set[str] = set()

    def once(self) -> None:
        """Does for each tenant what is due. What fails is logged, counted and tried again."""
        try:
            with self._store.read() as tables:
                tenants = tables.tenants()
        except ControlStoreUnavailable as error:
            logger.warning("maintenance waits", problem=str(error))
            return
        known = {tenant.account_id for tenant in tenants}
        for account_id in self._known - known:
            # Its files are gone, and their space comes back when nobody has them open.
            self._engine.release(account_id)
            self._retry_at.pop(account_id, None)
        self._known = known
        for tenant in tenants:
            if self._retry_at.get(tenant.account_id, 0.0) <= time.monotonic():
                self._maintain(tenant)

    def _maintain(self, tenant: Tenant) -> None:
        try:
            plane = self._engine.plane(tenant.account_id, tenant.name)
            # For one that was restored, or whose change was cut short.
            plane.set_retention(tenant.retention_seconds)
            done = plane.compact(after_seconds=self._after_seconds())
        except StoreError as error:
            self._retry_at[tenant.account_id] = time.monotonic() + _RETRY_SECONDS
            self._engine.release(tenant.account_id)
            self._counters.add(self._failed)
            logger.warning("compaction failed", tenant=tenant.name, problem=str(error))
            return
        if done is not None and done.bytes_written + done.expired:
            self._counters.add(self._written, done.bytes_written)
            logger.info(
                "compacted",
                tenant=tenant.name,
                blocks=done.blocks,
                merged=done.merged,
                expired=done.expired,
                bytes_written=done.bytes_written,
            )
