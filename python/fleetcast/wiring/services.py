"""What a worker opens after its fork."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.accounts import Authenticator, ControlStore, key_pepper
from fleetcast.engine import Engine
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
    directory = DataDirectory(brief.data)
    store = ControlStore(directory.control)
    engine = Engine(directory.planes, brief.master_key)
    authenticator = Authenticator(
        store, key_pepper(brief.master_key), brief.settings.service.environment
    )
    services = Services(
        settings=brief.settings,
        authenticator=authenticator,
        engine=engine,
        guard=SharedGuard(directory.limiter, brief.settings.limits),
        probes=http_probes(directory, store),
    )
    try:
        yield create_app(services)
    finally:
        engine.close()
        store.close()
