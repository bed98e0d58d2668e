"""A gRPC process, started by the supervisor."""

from __future__ import annotations

import asyncio
import socket

from fleetcast.composition.services import grpc_services
from fleetcast.composition.shared_settings import SharedSettings
from fleetcast.grpc.certificate import CertificateFiles
from fleetcast.grpc.server import Listener, serve
from fleetcast.malloc import keep_large_buffers
from fleetcast.metrics import Counters, Shared, sample
from fleetcast.supervisor.child import begin, report_alive, report_ready
from fleetcast.supervisor.listening import bound_address


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    configuration = begin("grpc")
    keep_large_buffers()
    directory = configuration.directory
    shared_settings = SharedSettings(configuration.settings_fd)
    settings = shared_settings.read().grpc
    # The supervisor's socket holds the port; it never listens, and so it gets no connections.
    with socket.socket(fileno=configuration.listener_fd) as held:
        listener = Listener(
            address=str(bound_address(held)),
            certificate=CertificateFiles(
                directory.root / settings.certificate, directory.root / settings.private_key
            ),
            shared=settings.processes > 1,
        )
        counters = Counters(Shared(configuration.counters_fd))
        serving = counters.gauge(sample("fleetcast_processes_ready", surface="grpc"))

        def ready() -> None:
            counters.put(serving, 1)
            report_ready(configuration)

        with grpc_services(
            directory, configuration.master_key, shared_settings, counters
        ) as services:
            asyncio.run(serve(services, listener, ready, lambda: report_alive(configuration)))


if __name__ == "__main__":
    main()
