"""Gauges of the stores of all tenants, for a scrape that no store can delay.

A thread reads a store, without its key and without a lock, and only if its state has changed. A
scrape waits for this thread for a moment and then shows the known values. Ten thousand idle tenants
therefore cost a check of each file, or one statement of the database, and a store that does not
answer delays no scrape.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import StoreError
from fleetcast.metrics import sample
from fleetcast.metrics.exposition import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fleetcast.engine import Glance, State, Stats, Tenant

    Signature = State | None

_PATIENCE_SECONDS = 0.5
_SETTLED_SECONDS = 10.0  # a compaction removes files shortly after it has changed the store

logger = logging.getLogger(__name__)


class _Known(NamedTuple):
    """Counts of one tenant, or `None` if they cannot be read, and the state of the file read."""

    name: str
    file: Signature
    since: float
    """Time when the file was first seen in this state, by a monotonic clock."""
    settled: bool
    stats: Stats | None
    lines: dict[str, str]


class TenantGauges:
    """`tenants` returns every tenant, `glance` looks at the store of an account."""

    def __init__(
        self,
        tenants: Callable[[], Iterable[Tenant]],
        glance: Callable[[str], Glance],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tenants = tenants
        self._glance = glance
        self._clock = clock
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tenants")
        self._known: dict[str, _Known] = {}
        self._reading: Future[None] = self._pool.submit(self._read)

    def lines(self) -> dict[str, list[str]]:
        """Returns lines of the exposition by family; an unreadable store keeps its last lines."""
        found: dict[str, list[str]] = {}
        for known in self._look():
            for family, line in known.lines.items():
                found.setdefault(family, []).append(line)
        return found

    def stats(self) -> dict[str, Stats | None]:
        """Returns counts by tenant; `None` for a store that cannot be read."""
        return {known.name: known.stats for known in self._look()}

    def _look(self) -> list[_Known]:
        """Waits a moment for the reading thread and returns the known values."""
        if self._reading.done():
            self._reading = self._pool.submit(self._read)
        try:
            self._reading.result(_PATIENCE_SECONDS)
        except TimeoutError:
            logger.warning("stores are still being read: some are shown as they were")
        except ControlStoreUnavailable as error:
            logger.warning("tenants are shown as they were: %s", error)
        return list(self._known.values())

    def _read(self) -> None:
        tenants = list(self._tenants())
        for gone in self._known.keys() - {tenant.account_id for tenant in tenants}:
            del self._known[gone]
        for tenant in tenants:
            glance = self._glance(tenant.account_id)
            file = _signature(glance)
            known = self._known.get(tenant.account_id)
            if known is None or known[:2] != (tenant.name, file):
                self._known[tenant.account_id] = self._ask(tenant, glance, file, self._clock())
            elif not known.settled:
                self._known[tenant.account_id] = self._ask(tenant, glance, file, known.since)

    def _ask(self, tenant: Tenant, glance: Glance, file: Signature, since: float) -> _Known:
        settled = file is None or self._clock() - since >= _SETTLED_SECONDS
        stats = None
        values: dict[str, float] = {"fleetcast_tenant_up": 0}
        try:
            stats = glance.counts()
            values = _values(stats)
        except StoreError as error:
            logger.warning("the store of %s cannot be read: %s", tenant.name, error)
        lines = {
            family: f"{sample(family, tenant=tenant.name)} {number(value)}"
            for family, value in values.items()
        }
        return _Known(tenant.name, file, since, settled, stats, lines)


def _signature(glance: Glance) -> Signature:
    """Returns the state of a store; `None` if the state cannot be read."""
    try:
        return glance.state()
    except (OSError, StoreError):
        return None


def _values(stats: Stats) -> dict[str, float]:
    return {
        "fleetcast_tenant_up": 1,
        "fleetcast_tenant_rows": stats.rows,
        "fleetcast_tenant_values": stats.values,
        "fleetcast_tenant_series": stats.series,
        "fleetcast_tenant_stored_bytes": stats.stored_bytes,
    }
