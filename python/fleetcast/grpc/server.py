"""Starts the front and the server behind it, reports that they are alive, and ends them."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from fleetcast.grpc import calls
from fleetcast.grpc.ended_calls import EndedCalls
from fleetcast.grpc.front import open_front
from fleetcast.grpc.health import Health, WriteReadiness
from fleetcast.grpc.names import HEALTH, INGEST, INGEST_BARE, REFLECTION
from fleetcast.grpc.reflection import Reflection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.engine import GrpcFront
    from fleetcast.grpc.front import Listener
    from fleetcast.grpc.services import GrpcServices

    _Methods = dict[str, grpc.RpcMethodHandler[Any, Any]]

_STOP_SECONDS = 20.0
_ALIVE_SECONDS = 2.0
_ANSWER_SECONDS = 30.0
_MESSAGE_BYTES_MAX = 65_536  # names of services and files


async def serve(
    services: GrpcServices,
    listener: Listener,
    run: Path,
    ready: Callable[[], None],
    lives: Callable[[], None],
) -> None:
    """Serves until SIGTERM or SIGINT, then until the calls under way have ended.

    The socket between the two is made in the folder `run`. The loop calls `ready` when both serve.
    From then on it calls `lives` while the front answers. Raises `OSError` without a good
    certificate.
    """
    readiness = WriteReadiness(services.probes)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with _own_socket(run) as socket:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX)])
        server.add_generic_rpc_handlers(_handlers(services, readiness))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        socket.chmod(0o600)
        front = open_front(services, listener, socket)
        ended = EndedCalls(services, front)
        ready()
        signs = asyncio.create_task(_give_signs(front, ended, lives))
        await stop.wait()
        readiness.leaving.set()
        await asyncio.to_thread(front.stop, _STOP_SECONDS)
        signs.cancel()
        ended.close()
        await server.stop(0)


@contextmanager
def _own_socket(run: Path) -> Iterator[Path]:
    """Yields the path of this process's socket; removes the sockets of processes that were killed.

    The path leads over a descriptor of the folder, because the path of a socket has at most 107
    bytes. Example: `/proc/self/fd/9/grpc-4711`.
    """
    run.mkdir(mode=0o700, exist_ok=True)
    for socket in run.glob("grpc-*"):
        if not Path("/proc", socket.name.removeprefix("grpc-")).exists():
            socket.unlink(missing_ok=True)
    folder = os.open(run, os.O_PATH | os.O_DIRECTORY)
    try:
        yield Path(f"/proc/self/fd/{folder}/grpc-{os.getpid()}")
    finally:
        os.close(folder)


async def _give_signs(front: GrpcFront, ended: EndedCalls, lives: Callable[[], None]) -> None:
    while True:
        if await asyncio.to_thread(front.is_alive, _ANSWER_SECONDS) and ended.is_alive:
            lives()
        await asyncio.sleep(_ALIVE_SECONDS)


def _handlers(
    services: GrpcServices, readiness: WriteReadiness
) -> tuple[grpc.GenericRpcHandler, ...]:
    """The handlers of all methods, on raw bytes.

    Every method takes a stream of requests, which is the same on the wire. So a handler's deadline,
    not the library, ends a call that sends no message.
    """
    health = Health(readiness)
    ingest: _Methods = {"Health": grpc.stream_unary_rpc_method_handler(calls.unary(health.health))}
    checks: _Methods = {
        "Check": grpc.stream_unary_rpc_method_handler(calls.unary(health.check)),
        "Watch": grpc.stream_stream_rpc_method_handler(calls.stream(health.watch)),
    }
    methods = {INGEST: ingest, INGEST_BARE: ingest, HEALTH: checks}
    if services.settings().grpc.reflection:
        info = calls.stream(Reflection().info)
        schema: _Methods = {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(info)}
        methods |= dict.fromkeys(REFLECTION, schema)
    handlers = grpc.method_handlers_generic_handler
    return tuple(handlers(name, each) for name, each in methods.items())
