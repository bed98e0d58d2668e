"""The front of one process, which takes all calls: its options, and the rules of its writes."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import GrpcFront
from fleetcast.grpc.names import HEALTH, INGEST, INGEST_BARE, REFLECTION
from fleetcast.metrics import Counters, Requests, Writes, engine_accounting
from fleetcast.surface.error_codes import ERROR_CODES
from fleetcast.surface.planes import write_limits

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.grpc.services import GrpcServices


class Listener(NamedTuple):
    """A listening socket, and the certificate that clients get. There is no plain-text listener."""

    descriptor: int
    certificate: Path
    private_key: Path


class WriteRules(NamedTuple):
    """Everything that a write needs to know of the settings in force."""

    write_limits: dict[str, object]
    held_bytes_max: int
    """Bytes of messages under way. Each account gets a share of this number."""


class FrontOptions(NamedTuple):
    """Everything else that a front needs."""

    listener: int
    settings: int
    """Memory whose first word is the version of the settings in force."""
    certificate: Path
    private_key: Path
    backend: Path
    """The Unix socket of the server behind the front."""
    descriptors_max: int
    message_bytes_max: int
    processes: int
    in_flight: int
    """Index of the gauge of calls under way."""
    statuses: dict[str, tuple[str, int | None]]
    """By error code: the name of a status, and seconds until the client may retry."""
    handed_on: dict[str, str]
    """Paths of the calls that go to the server behind, with their names in logs and metrics."""


def open_front(services: GrpcServices, listener: Listener, backend: Path) -> GrpcFront:
    """Returns a front that serves. Raises `OSError` that names the file of a bad certificate."""
    settings = services.settings()
    # The front has a row for itself, because the engine adds without our lock.
    counters = Counters(services.counters.shared)
    requests, writes = Requests(counters, "grpc"), Writes(counters, "grpc")

    def rules() -> WriteRules:
        now = services.settings()
        limits = write_limits(now, now.grpc.records_per_call_max)
        return WriteRules(limits, now.ingest.buffer_bytes_max)

    return GrpcFront(
        services.authenticator,
        services.engine.open_planes,
        rules,
        engine_accounting(counters.shared, "grpc", requests, writes),
        FrontOptions(
            listener=listener.descriptor,
            settings=services.settings_descriptor,
            certificate=listener.certificate,
            private_key=listener.private_key,
            backend=backend,
            descriptors_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            message_bytes_max=settings.grpc.message_bytes_max,
            processes=settings.grpc.processes,
            in_flight=requests.in_flight,
            statuses={
                code: (row.grpc, row.retry_seconds) for code, row in ERROR_CODES.items() if row.grpc
            },
            handed_on=_handed_on(reflects=bool(settings.grpc.reflection)),
        ),
    )


def _handed_on(*, reflects: bool) -> dict[str, str]:
    calls = {(name, "Health"): "TelemetryIngest/Health" for name in (INGEST, INGEST_BARE)}
    calls |= {(HEALTH, method): f"Health/{method}" for method in ("Check", "Watch")}
    if reflects:
        method = "ServerReflectionInfo"
        calls |= {(name, method): f"ServerReflection/{method}" for name in REFLECTION}
    return {f"/{service}/{method}": route for (service, method), route in calls.items()}
