"""The processes of the public HTTP listener."""

from __future__ import annotations

from fleetcast.composition.http_application import http_application
from fleetcast.engine import key_fields
from fleetcast.supervisor.http_serving import HttpListener, serve_http


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    serve_http(
        HttpListener(
            "http",
            http_application,
            lambda settings: settings.limits.body_bytes_max,
            lambda settings: (settings.http.workers, settings.http.threads),
            key_fields(is_adapters=False),
        )
    )


if __name__ == "__main__":
    main()
