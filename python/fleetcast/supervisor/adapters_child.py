"""The processes of the adapter listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.adapters.app import PROCESS
from fleetcast.composition.adapter_application import adapter_application
from fleetcast.engine import key_fields
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.supervisor.http_serving import HttpListener, serve_http

if TYPE_CHECKING:
    from fleetcast.config import Settings


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    serve_http(
        HttpListener(
            PROCESS,
            adapter_application,
            _limits,
            lambda settings: (settings.adapters.workers, settings.adapters.threads),
            key_fields(is_adapters=True),
        )
    )


def _limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        body_bytes_max=settings.adapters.body_bytes_max,
        read_deadline_seconds=settings.http.read_deadline_seconds,
        request_deadline_seconds=settings.http.request_deadline_seconds,
        takes_chunks=True,
    )


if __name__ == "__main__":
    main()
