"""What a worker opens after its fork, and a gRPC process when it starts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts import Authenticator, ControlStore, key_pepper
from fleetcast.engine import Engine
from fleetcast.grpc.services import Services as GrpcServices
from fleetcast.http.app import Services, create_app
from fleetcast.http.guard import SharedGuard
from fleetcast.wiring.directory import DataDirectory
from fleetcast.wiring.probes import http_probes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from fleetcast.wiring.child import Brief


@contextmanager
def http_application(brief: Brief) -> Iterator[WSGIApplication]:
    """The WSGI application of one worker, and the stores it stands on.

    This is where HTTP is plugged in. It is entered in every worker after the fork, never before:
    LMDB environments do not survive one.
    """
    with _opened(brief) as opened:
        services = Services(
            settings=brief.settings,
            authenticator=opened.authenticator,
            engine=opened.engine,
            guard=SharedGuard(opened.directory.limiter, brief.settings.limits),
            probes=http_probes(opened.directory, opened.store),
        )
        yield create_app(services)


@contextmanager
def grpc_services(brief: Brief) -> Iterator[GrpcServices]:
    """What one gRPC process stands on. This is where gRPC is plugged in."""
    with _opened(brief) as opened:
        yield GrpcServices(
            settings=brief.settings,
            authenticator=opened.authenticator,
            engine=opened.engine,
            probes=http_probes(opened.directory, opened.store)["telemetry"],
        )


class _Opened(NamedTuple):
    directory: DataDirectory
    store: ControlStore
    engine: Engine
    authenticator: Authenticator


@contextmanager
def _opened(brief: Brief) -> Iterator[_Opened]:
    directory = DataDirectory(brief.data)
    store = ControlStore(directory.control)
    engine = Engine(directory.planes, brief.master_key)
    pepper = key_pepper(brief.master_key)
    authenticator = Authenticator(store, pepper, brief.settings.service.environment)
    try:
        yield _Opened(directory, store, engine, authenticator)
    finally:
        engine.close()
        store.close()
