"""A gRPC process, started by the supervisor."""

from __future__ import annotations

import asyncio
import socket

from fleetcast.composition.services import grpc_services
from fleetcast.composition.shared_settings import Board
from fleetcast.grpc.server import Listener, serve
from fleetcast.logs import configure_logs
from fleetcast.malloc import keep_large_buffers
from fleetcast.metrics import Counters, Shared, sample
from fleetcast.supervisor.child import end_with_supervisor, read_brief, report_ready
from fleetcast.supervisor.listening import bound_address


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    brief = read_brief()
    configure_logs("grpc")
    end_with_supervisor()
    keep_large_buffers()
    settings = brief.settings.grpc
    # The supervisor's socket holds the port; it never listens, and so it gets no connections.
    with socket.socket(fileno=brief.listener_fd) as held:
        listener = Listener(
            address=str(bound_address(held)),
            certificate=(brief.data / settings.certificate).read_bytes(),
            private_key=(brief.data / settings.private_key).read_bytes(),
            shared=settings.processes > 1,
        )
        counters = Counters(Shared(brief.counters_fd))
        serving = counters.gauge(sample("fleetcast_processes_ready", surface="grpc"))

        def ready() -> None:
            counters.put(serving, 1)
            report_ready(brief)

        with grpc_services(brief, Board(brief.board_fd), counters) as services:
            asyncio.run(serve(services, listener, ready))


if __name__ == "__main__":
    main()
