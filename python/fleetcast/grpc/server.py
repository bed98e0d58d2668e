"""The server of one process: its handlers, its options, its life."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from fleetcast.grpc.boundary import CallBoundary
from fleetcast.grpc.connections import Connections
from fleetcast.grpc.health import Health, WriteReadiness
from fleetcast.grpc.ingest import TelemetryIngest
from fleetcast.grpc.library_log import keep_metadata_out_of_logs, log_task_failure
from fleetcast.grpc.names import HEALTH, INGEST, INGEST_BARE, REFLECTION
from fleetcast.grpc.own_calls import prove
from fleetcast.grpc.reflection import Reflection
from fleetcast.grpc.servers import Servers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast.config import Settings
    from fleetcast.grpc.certificate import CertificateFiles
    from fleetcast.grpc.services import GrpcServices

    _Methods = dict[str, grpc.RpcMethodHandler[Any, Any]]

_STOP_SECONDS = 20.0
_REFLECTING = ("development", "sandbox")  # where reflection is on unless it is turned off
_PENDING_CALLS_MAX = 16_384  # four times the calls that are served at once
_HOUR_MS = 3_600_000
_FRAME_BYTES_MAX = 1_048_576


@dataclass(frozen=True, kw_only=True)
class Listener:
    """Address and certificate to listen with. There is no plain-text listener."""

    address: str
    certificate: CertificateFiles
    shared: bool
    """Other processes of this service listen on the same port."""


async def serve(
    services: GrpcServices,
    listener: Listener,
    ready: Callable[[], None],
    lives: Callable[[], None],
) -> None:
    """Serves until SIGTERM or SIGINT, then until what is under way has ended.

    The loop calls `ready` when it serves, and from then on `lives` while own calls are answered.
    Raises `RuntimeError` where it cannot listen, `OSError` without a certificate.
    """
    readiness = WriteReadiness(services.probes)
    ingest = TelemetryIngest(services, readiness)
    connections = Connections(int(listener.address.rpartition(":")[2]))
    handlers = _handlers(services, CallBoundary(services, connections), ingest, readiness)
    keep_metadata_out_of_logs()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_task_failure)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    servers = Servers(lambda: _server(services, listener, handlers))
    await servers.start()
    ready()
    beside = [
        asyncio.create_task(connections.keep_bounded()),
        # A call to a port that others share may reach another process: it would prove nothing.
        asyncio.create_task(prove(None if listener.shared else listener.address, lives)),
    ]
    await servers.keep_serving(stop)
    for task in beside:
        task.cancel()
    readiness.leaving.set()
    await servers.stop(_STOP_SECONDS)
    ingest.close()


def _server(
    services: GrpcServices, listener: Listener, handlers: Sequence[grpc.GenericRpcHandler]
) -> grpc.aio.Server:
    server = grpc.aio.server(options=_options(services.settings(), shared=listener.shared))
    server.add_generic_rpc_handlers(handlers)
    server.add_secure_port(listener.address, listener.certificate.credentials())
    return server


def _handlers(
    services: GrpcServices,
    boundary: CallBoundary,
    ingest: TelemetryIngest,
    readiness: WriteReadiness,
) -> tuple[grpc.GenericRpcHandler, ...]:
    """All on raw bytes, and as streams of requests, which are the same on the wire.

    Nothing is decoded before the key is checked, and a call that sends no message is under a
    handler's deadline, not in the library's hands.
    """
    settings = services.settings()
    health = Health(readiness)
    methods: _Methods = {
        "Write": grpc.stream_unary_rpc_method_handler(
            boundary.unary("TelemetryIngest/Write", ingest.write)
        ),
        "Health": grpc.stream_unary_rpc_method_handler(
            boundary.unary("TelemetryIngest/Health", ingest.health, keyless=True)
        ),
    }
    handlers = [
        grpc.method_handlers_generic_handler(name, methods) for name in (INGEST, INGEST_BARE)
    ]
    checks: _Methods = {
        "Check": grpc.stream_unary_rpc_method_handler(
            boundary.unary("Health/Check", health.check, keyless=True)
        ),
        "Watch": grpc.stream_stream_rpc_method_handler(
            boundary.stream("Health/Watch", health.watch)
        ),
    }
    handlers.append(grpc.method_handlers_generic_handler(HEALTH, checks))
    if _reflects(settings):
        info = boundary.stream("ServerReflection/ServerReflectionInfo", Reflection().info)
        reflect: _Methods = {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(info)}
        handlers += [grpc.method_handlers_generic_handler(name, reflect) for name in REFLECTION]
    return tuple(handlers)


def _reflects(settings: Settings) -> bool:
    wanted = settings.grpc.reflection
    return settings.service.environment in _REFLECTING if wanted is None else wanted


def _options(settings: Settings, *, shared: bool) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", int(shared)),
        # Also what a message may unpack to.
        ("grpc.max_receive_message_length", settings.grpc.message_bytes_max),
        ("grpc.max_concurrent_streams", 256),
        # Beyond its own bound the library cancels calls at random, whoever made them, and tells
        # nobody why. Those that wait are taken in turn and answered, by what their tenant may have.
        ("grpc.server.max_pending_requests", _PENDING_CALLS_MAX),
        ("grpc.server.max_pending_requests_hard_limit", _PENDING_CALLS_MAX),
        # A message of a megabyte in one frame instead of 64; the window bounds it as before.
        ("grpc.http2.max_frame_size", _FRAME_BYTES_MAX),
        # Stations hold a channel that is silent for long, and may ask every ten seconds.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.http2.max_ping_strikes", 2),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        # The library varies the age of each connection by a tenth.
        ("grpc.max_connection_age_ms", _HOUR_MS),
        ("grpc.max_connection_age_grace_ms", 30_000),
    ]
