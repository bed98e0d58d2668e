"""The processes of the public HTTP listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.composition.http_application import http_application
from fleetcast.engine import key_fields
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.supervisor.http_serving import HttpListener, serve_http

if TYPE_CHECKING:
    from fleetcast.config import Settings


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    serve_http(
        HttpListener(
            "http",
            http_application,
            _limits,
            lambda settings: (settings.http.workers, settings.http.threads),
            key_fields(is_adapters=False),
        )
    )


def _limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        body_bytes_max=settings.limits.body_bytes_max,
        read_deadline_seconds=settings.http.read_deadline_seconds,
        request_deadline_seconds=settings.http.request_deadline_seconds,
    )


if __name__ == "__main__":
    main()
