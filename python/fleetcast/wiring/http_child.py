"""The HTTP processes: gunicorn's arbiter, started by the supervisor, and its workers."""

from __future__ import annotations

from fleetcast.http.limits import Limits
from fleetcast.http.server import HttpServer
from fleetcast.logs import configure_logs, logging_config
from fleetcast.wiring.child import end_with_supervisor, read_brief, report_ready
from fleetcast.wiring.services import http_application


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    brief = read_brief()
    configure_logs("http")
    end_with_supervisor()
    http = brief.settings.http
    server = HttpServer(
        lambda: http_application(brief),
        limits=Limits(
            body_bytes_max=brief.settings.limits.body_bytes_max,
            read_deadline_seconds=http.read_deadline_seconds,
            request_deadline_seconds=http.request_deadline_seconds,
        ),
        settings={
            "bind": f"fd://{brief.listener_fd}",
            "workers": http.workers,
            "threads": http.threads,
            "logconfig_dict": logging_config(),
            "post_fork": lambda _arbiter, _worker: end_with_supervisor(),
            "post_worker_init": lambda _worker: report_ready(brief),
        },
    )
    server.run()


if __name__ == "__main__":
    main()
