"""Processes of the service, and its readiness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.surface.answers import Answer, document

if TYPE_CHECKING:
    from fleetcast.console.services import ConsoleServices

_SHOWN = (
    "fleetcast_http_requests_in_flight",
    "fleetcast_http_connections",
    "fleetcast_http_queue_length",
    "fleetcast_grpc_requests_in_flight",
    "fleetcast_ingest_buffer_bytes",
    "fleetcast_series_lost_total",
)


def processes(services: ConsoleServices) -> Answer:
    """Returns all processes. Their number is bounded by the settings."""
    ready, checks = services.readiness()
    totals = services.totals.all()
    return document(
        {
            "ready": ready,
            "checks": checks["checks"],
            "gauges": {name.removeprefix("fleetcast_"): totals[name] for name in _SHOWN},
            "processes": services.processes(),
        }
    )
