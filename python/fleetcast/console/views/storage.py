"""Storage: log and segments of each tenant, compaction of all, and a tenant's next work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.console.tenant_planes import known_tenant, read_plane
from fleetcast.console.views.tables import TablePage
from fleetcast.metrics import sample
from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from fleetcast.console.query import ConsoleQuery
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Stats

_COLUMNS = {
    "log": "log_bytes",
    "segments": "segment_bytes",
    "names": "names_bytes",
    "free": "free_bytes",
    "bytes": "stored_bytes",
}
_ORDERS = ("tenant", *_COLUMNS)
_FAILING_SINCE = "fleetcast_upkeep_failing_since_time_seconds"
_NS_PER_SECOND = 1_000_000_000


class _StoreRow(NamedTuple):
    tenant: str
    stats: Stats
    failing_since: int


def storage(services: ConsoleServices, query: ConsoleQuery) -> Answer:
    """Returns a page of stores, and compaction as a whole. Raises `ConsoleRefused`."""
    page = TablePage.of(query, _ORDERS)
    totals = services.totals.all()
    rows = [
        _StoreRow(name, stats, totals[sample(_FAILING_SINCE, tenant=name)])
        for name, stats in sorted(services.stats().items())
        if stats is not None and page.search in name
    ]

    def key(row: _StoreRow) -> float | str:
        order = _COLUMNS.get(page.order)
        return row.tenant if order is None else float(getattr(row.stats, order))

    return document(
        {
            "total": len(rows),
            "compaction": {
                "written_bytes": totals[sample("fleetcast_compaction_bytes_total")],
                "failed": totals[sample("fleetcast_compaction_failed_total")],
                "progress_at": totals[sample("fleetcast_upkeep_progress_time_seconds")] or None,
                "failing": sum(1 for row in rows if row.failing_since),
            },
            "sums": {
                name: sum(getattr(row.stats, column) for row in rows)
                for name, column in _COLUMNS.items()
            },
            "rows": [_shown(row) for row in page.cut(rows, key)],
        }
    )


def _shown(row: _StoreRow) -> dict[str, object]:
    stats = row.stats
    return {
        "tenant": row.tenant,
        **{name: getattr(stats, column) for name, column in _COLUMNS.items()},
        "log_file_bytes": stats.log_file_bytes,
        "segment_count": stats.segments,
        "generation": stats.generation,
        "rows": stats.stored_rows,
        "values": stats.stored_values,
        "failing_since": row.failing_since or None,
    }


def upcoming(services: ConsoleServices, tenant: str) -> Answer:
    """Returns the work that is due in a store.

    Raises `ConsoleRefused`, `ControlStoreUnavailable`.
    """
    after_seconds = services.settings().store.compact_after_seconds
    due = read_plane(services, tenant, lambda plane: plane.upcoming(after_seconds=after_seconds))
    since_ns = due.log_since_ns
    return document(
        {
            "tenant": known_tenant(services, tenant).name,
            "log_bytes_due": due.log_bytes_due,
            "log_since": None if since_ns is None else since_ns // _NS_PER_SECOND,
            "log_due": None if since_ns is None else since_ns // _NS_PER_SECOND + after_seconds,
            "days_due": None if due.due_ns is None else due.due_ns // _NS_PER_SECOND,
            "retention_seconds": due.retention_seconds,
        }
    )
