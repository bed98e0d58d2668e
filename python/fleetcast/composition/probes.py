"""Checks behind the health endpoints and `/readyz`. A check fails if it raises.

The checks cover the parts that all tenants share, and no single tenant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleetcast.installation.stores import Stores
    from fleetcast.surface.readiness import Probe


def http_probes(stores: Stores) -> Mapping[str, Mapping[str, Probe]]:
    """Returns checks by subsystem, then by dependency."""
    return {
        "telemetry": telemetry_probes(stores),
        "topology": {"timeseries_store": stores.probe_reads},
        "predictions": {"prediction_store": stores.predictions.ping},
    }


def readiness_probes(stores: Stores, families: Callable[[], Sequence[str]]) -> Mapping[str, Probe]:
    """Returns the checks that must pass for the service to be ready, by dependency."""

    def forecasts() -> None:
        if families():
            stores.predictions.ping()

    return {**telemetry_probes(stores), "prediction_store": forecasts}


def telemetry_probes(stores: Stores) -> Mapping[str, Probe]:
    """Returns the checks that must pass for writes to be accepted, by dependency."""

    def accounts() -> None:
        with stores.control.read() as view:
            Tenant.get(view, "probe")

    return {"timeseries_store": stores.probe_writes, "auth_store": accounts}
