"""What a worker opens after its fork, and a gRPC process when it starts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts import Authenticator, ControlStore, Usage, key_pepper
from fleetcast.composition.closing import closing_unused
from fleetcast.composition.flushing import Flusher
from fleetcast.composition.forecasting import Forecasting, simulated
from fleetcast.composition.probes import http_probes, telemetry_probes
from fleetcast.composition.shared_settings import Live
from fleetcast.engine import Engine
from fleetcast.forecast.serving.store import PredictionStore
from fleetcast.grpc.services import Services as GrpcServices
from fleetcast.http.app import Services, create_app
from fleetcast.http.limiter import SharedGuard
from fleetcast.installation.directory import DataDirectory
from fleetcast.logs import write_served
from fleetcast.metrics import AccountRequests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from fleetcast.composition.shared_settings import Board
    from fleetcast.config import Settings
    from fleetcast.metrics import Counters
    from fleetcast.supervisor.child import Brief


@contextmanager
def http_application(brief: Brief, board: Board, counters: Counters) -> Iterator[WSGIApplication]:
    """The WSGI application of one worker, and the stores it stands on.

    This is where HTTP is plugged in. It is entered in every worker after the fork, never before:
    LMDB environments do not survive one. Changed settings make a new application on the same
    stores; each request is served by the one that was current when it began.
    """
    with _opened(brief, board, counters) as (directory, store, engine, authenticator):
        usage = Usage(store, AccountRequests(counters.shared), brief.run)
        predictions = PredictionStore(directory.forecast)
        forecast = Live(board, lambda settings: settings.forecast)
        forecasting = Forecasting(predictions, forecast.current, counters)

        simulate = simulated(directory.simulation)

        def made(settings: Settings) -> WSGIApplication:
            return create_app(
                Services(
                    settings=settings,
                    authenticator=authenticator,
                    engine=engine,
                    guard=SharedGuard(directory.limiter, settings.limits, counters),
                    probes=http_probes(directory, store, predictions),
                    counters=counters,
                    predictor=forecasting,
                    simulate=simulate if settings.topology.simulate else None,
                    requests_total=usage.requests_total,
                    access_log=write_served,
                )
            )

        live = Live(board, made)

        def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            return live.current()(environ, start_response)

        try:
            yield application
        finally:
            predictions.close()


@contextmanager
def grpc_services(brief: Brief, board: Board, counters: Counters) -> Iterator[GrpcServices]:
    """What one gRPC process stands on. This is where gRPC is plugged in."""
    with _opened(brief, board, counters) as (directory, store, engine, authenticator):
        live = Live(board, lambda settings: settings)
        yield GrpcServices(
            settings=live.current,
            authenticator=authenticator,
            engine=engine,
            probes=telemetry_probes(directory, store),
            counters=counters,
            access_log=write_served,
        )


class _Opened(NamedTuple):
    directory: DataDirectory
    store: ControlStore
    engine: Engine
    authenticator: Authenticator


@contextmanager
def _opened(brief: Brief, board: Board, counters: Counters) -> Iterator[_Opened]:
    directory = DataDirectory(brief.data)
    store = ControlStore(directory.control)
    engine = Engine(directory.planes, brief.master_key)
    pepper = key_pepper(brief.master_key)
    authenticator = Authenticator(store, pepper, brief.settings.service.environment)
    ingest = Live(board, lambda settings: settings.ingest)
    try:
        with Flusher(engine, ingest.current, counters).running(), closing_unused(engine):
            yield _Opened(directory, store, engine, authenticator)
    finally:
        engine.close()
        store.close()
