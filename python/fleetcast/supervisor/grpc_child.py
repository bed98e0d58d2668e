"""A gRPC process, started by the supervisor."""

from __future__ import annotations

import asyncio
import socket

from fleetcast.composition.grpc_services import grpc_services
from fleetcast.composition.shared_settings import SharedSettings
from fleetcast.grpc.front import Listener
from fleetcast.grpc.server import serve
from fleetcast.metrics import Counters, Shared, sample
from fleetcast.supervisor.child import begin, report_alive, report_ready


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    configuration = begin("grpc")
    directory = configuration.directory
    shared_settings = SharedSettings(configuration.settings_fd)
    settings = shared_settings.read().grpc
    counters = Counters(Shared(configuration.counters_fd))
    serving = counters.gauge(sample("fleetcast_processes_ready", surface="grpc"))

    def ready() -> None:
        counters.put(serving, 1)
        report_ready(configuration)

    def lives() -> None:
        report_alive(configuration)

    files = directory.root / settings.certificate, directory.root / settings.private_key
    with (
        socket.socket(fileno=configuration.listener_fd) as listening,
        grpc_services(directory, configuration.master_key, shared_settings, counters) as services,
    ):
        listener = Listener(listening.fileno(), *files)
        asyncio.run(serve(services, listener, directory.run, ready, lives))


if __name__ == "__main__":
    main()
