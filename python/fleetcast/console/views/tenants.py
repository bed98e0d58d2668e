"""Tenants: the rate of their records, their stored rows and bytes, and their rejected records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.console.views.tables import TablePage
from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Stats, Tenant

_COLUMNS = {
    "rows": "rows",
    "values": "values",
    "series": "series",
    "bytes": "stored_bytes",
    "rejected": "rejected",
}
_ORDERS = ("tenant", "rate", "rows", "bytes", "series", "rejected")
_RATE_SECONDS = 30.0
_RATE_SECONDS_MIN = 1.0  # a shorter time gives no useful rate


class _Rates(NamedTuple):
    """Records per second of each tenant; all are 0 if `seconds` is too short."""

    seconds: float
    before: Mapping[str, int]
    now: Mapping[str, int]

    @property
    def known(self) -> bool:
        return self.seconds >= _RATE_SECONDS_MIN

    def of(self, kind: str, tenant: str) -> float:
        name = f"{kind} {tenant}"
        grown = self.now.get(name, 0) - self.before.get(name, 0)
        return grown / self.seconds if self.known else 0.0


class _TenantRow(NamedTuple):
    tenant: Tenant
    stats: Stats | None
    rate: float


def tenants(services: ConsoleServices, query: ConsoleQuery) -> Answer:
    """Returns a page of tenants. Raises `ConsoleRefused`, `ControlStoreUnavailable`."""
    page = TablePage.of(query, _ORDERS)
    rates = _Rates(*services.records.since(_RATE_SECONDS))
    stats = services.stats()
    rows = [
        _TenantRow(tenant, stats.get(tenant.name), rates.of("accepted", tenant.name))
        for tenant in services.control.tenants()
        if page.search in tenant.name
    ]
    return document(
        {
            "total": len(rows),
            "rate_seconds": round(rates.seconds, 1) if rates.known else None,
            "sums": {
                "rate": sum(row.rate for row in rows),
                "rows": sum(row.stats.rows for row in rows if row.stats),
                "bytes": sum(row.stats.stored_bytes for row in rows if row.stats),
            },
            "rows": [
                _shown(row, rates) for row in page.cut(rows, lambda row: _key(row, page.order))
            ],
        }
    )


def _key(row: _TenantRow, order: str) -> float | str:
    if order == "tenant":
        return row.tenant.name
    if order == "rate":
        return row.rate
    return -1 if row.stats is None else float(getattr(row.stats, _COLUMNS[order]))


def _shown(row: _TenantRow, rates: _Rates) -> dict[str, object]:
    tenant, stats = row.tenant, row.stats
    return {
        "tenant": tenant.name,
        "status": tenant.status,
        "plan": tenant.plan,
        "live_ingest": tenant.live_ingest,
        "retention_seconds": tenant.retention_seconds,
        "created_at": tenant.created_at,
        "readable": stats is not None,
        "rate": row.rate if rates.known else None,
        "rejected_rate": rates.of("rejected", tenant.name) if rates.known else None,
        **{name: getattr(stats, column, None) for name, column in _COLUMNS.items()},
        "unreadable": rates.now.get(f"unreadable {tenant.name}", 0),
    }
