"""The processes of the adapter listener."""

from __future__ import annotations

from fleetcast.adapters.app import PROCESS
from fleetcast.composition.adapter_application import adapter_application
from fleetcast.engine import key_fields
from fleetcast.supervisor.http_serving import HttpListener, serve_http


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    serve_http(
        HttpListener(
            PROCESS,
            adapter_application,
            lambda settings: settings.adapters.body_bytes_max,
            lambda settings: (settings.adapters.workers, settings.adapters.threads),
            key_fields(is_adapters=True),
            takes_chunks=True,
        )
    )


if __name__ == "__main__":
    main()
