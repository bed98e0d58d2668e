"""Everything that the console reads. The console itself opens and changes none of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleetcast.accounts import ControlStore
    from fleetcast.config import Settings
    from fleetcast.console.history import History
    from fleetcast.console.sessions import Sessions
    from fleetcast.console.tenant_reads import TenantReads
    from fleetcast.engine import Service, Stats
    from fleetcast.forecast.serving.hindsight import Hindsight
    from fleetcast.metrics import Totals
    from fleetcast.surface.planes import TenantPlanes


@dataclass(frozen=True, kw_only=True)
class ConsoleServices:
    """Parts of one process that the views read from."""

    control: ControlStore
    sessions: Sessions
    planes: TenantPlanes
    reads: TenantReads
    stats: Callable[[], Mapping[str, Stats | None]]
    """Counts of each tenant's store by name; `None` for a store that cannot be read."""
    records: History
    """Records accepted and rejected, named `accepted TENANT` and `rejected TENANT`."""
    day: History
    """Records of all tenants over a day, named `accepted` and `rejected`."""
    refusals: History
    """Requests refused, named `SURFACE CODE`."""
    refused_keys: History
    """Requests of known keys refused, as `counts.refused_key_counts` names them."""
    totals: Totals
    """All counters of the service."""
    readiness: Callable[[], tuple[bool, Mapping[str, object]]]
    """Returns true if the service is ready, and the checks."""
    processes: Callable[[], Sequence[Mapping[str, object]]]
    """Returns each process of the service."""
    disk: Callable[[], tuple[int, int]]
    """Returns all bytes and the free bytes of the file system that holds the data."""
    findings: Callable[[], Sequence[Mapping[str, object]] | None]
    """Returns what `fleetcast doctor` found last, or `None` until it has ended once."""
    settings: Callable[[], Settings]
    evaluator: Callable[[], Service]
    """Returns the service that answers questions in Prometheus' language."""
    hindsight: Callable[[], Hindsight] | None
    """`None` if the libraries of forecasts are not installed."""
