"""The process behind the private listener."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.composition.private_listener import private_application
from fleetcast.composition.shared_settings import SharedSettings
from fleetcast.http.server.arbiter import HttpServer
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.installation.backend import stores_of
from fleetcast.metrics import Shared
from fleetcast.supervisor.child import begin, gunicorn_settings, report_alive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from fleetcast.supervisor.child_configuration import ChildConfiguration

# An address gets half of the threads, and a store that hangs keeps some threads for seconds.
_THREADS = 8


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    configuration = begin("admin")
    server = HttpServer(
        lambda: _application(configuration),
        limits=ConnectionLimits,
        settings=gunicorn_settings(configuration, workers=1, threads=_THREADS),
        lives=lambda: report_alive(configuration),
    )
    server.run()


@contextmanager
def _application(configuration: ChildConfiguration) -> Iterator[WSGIApplication]:
    """The application of the worker, opened after its fork."""
    settings = SharedSettings(configuration.settings_fd)
    directory = configuration.directory
    stores = stores_of(directory, settings.read(), configuration.master_key, follow=True)
    try:
        shared = Shared(configuration.counters_fd)
        with private_application(directory, stores, settings, shared) as application:
            yield application
    finally:
        stores.close()


if __name__ == "__main__":
    main()
