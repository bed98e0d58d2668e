"""Services of a process: opened by an HTTP worker after its fork, by a gRPC process at start."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.accounts import Authenticator, key_pepper
from fleetcast.adapters.app import create_app as create_adapter_app
from fleetcast.composition.closing import closing_unused
from fleetcast.composition.flushing import Flusher
from fleetcast.composition.forecasting import Forecasting
from fleetcast.composition.probes import http_probes, telemetry_probes
from fleetcast.composition.shared_settings import Live
from fleetcast.composition.simulation import simulated
from fleetcast.config.name_mapping import read_names
from fleetcast.engine import KeyVerdicts
from fleetcast.grpc.services import GrpcServices
from fleetcast.http.app import create_app
from fleetcast.http.client_limiter import ClientLimiter
from fleetcast.http.services import HttpServices
from fleetcast.installation.backend import stores_of
from fleetcast.log_lines import write_served
from fleetcast.metrics import AccountRequests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Counters


@dataclass(frozen=True, kw_only=True)
class Opening:
    """All that a worker of an HTTP listener opens its application with, after the fork."""

    directory: DataDirectory
    stores: Stores
    master_key: bytes = field(repr=False)
    settings: SharedSettings
    counters: Counters
    front_counters: Counters
    """A row of its own for what the front serves by itself, which adds without our lock."""
    run: str
    """Names this run of the service."""


@contextmanager
def http_application(opening: Opening) -> Iterator[WSGIApplication]:
    """The WSGI application of one worker, and the stores it stands on.

    Enter it in every worker after the fork, never before: no store survives one.
    Changed settings make a new application on the same stores; each request is served by the one
    that was current when it began.
    """
    directory, stores, counters = opening.directory, opening.stores, opening.counters
    with _opened(stores, opening.master_key, opening.settings, counters) as authenticator:
        usage = stores.usage(AccountRequests(counters.shared), opening.run)
        predictions = stores.predictions
        forecast = Live(opening.settings, lambda settings: settings.forecast)
        forecasting = Forecasting(predictions, forecast.current, counters)
        simulate = simulated(directory.simulation)

        def build(settings: Settings) -> WSGIApplication:
            return create_app(
                HttpServices(
                    settings=settings,
                    authenticator=authenticator,
                    engine=stores.engine,
                    limiter=ClientLimiter(directory.limiter, settings.limits, counters),
                    probes=http_probes(stores),
                    counters=counters,
                    front_counters=opening.front_counters,
                    predictor=forecasting,
                    simulate=simulate if settings.topology.simulate else None,
                    requests_total=usage.requests_total,
                    access_log=write_served,
                )
            )

        yield _current(Live(opening.settings, build))


@contextmanager
def adapter_application(opening: Opening) -> Iterator[WSGIApplication]:
    """As `http_application`, of the listener for other protocols. Raises `OperatorError`."""
    directory, stores, counters = opening.directory, opening.stores, opening.counters
    mapping = read_names(directory.adapters)
    with _opened(stores, opening.master_key, opening.settings, counters) as authenticator:

        def build(settings: Settings) -> WSGIApplication:
            limiter = ClientLimiter(directory.limiter, settings.limits, counters)
            services = HttpServices(
                settings=settings,
                authenticator=authenticator,
                engine=stores.engine,
                limiter=limiter.with_own_rate(
                    directory.adapter_limiter, settings.adapters.requests_per_minute
                ),
                probes={"telemetry": telemetry_probes(stores)},
                counters=counters,
                front_counters=opening.front_counters,
                access_log=write_served,
            )
            return create_adapter_app(services, mapping)

        yield _current(Live(opening.settings, build))


def _current(live: Live[WSGIApplication]) -> WSGIApplication:
    """Serves each request by the application that is current when it begins."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return live.current()(environ, start_response)

    return application


@contextmanager
def grpc_services(
    directory: DataDirectory, master_key: bytes, shared: SharedSettings, counters: Counters
) -> Iterator[GrpcServices]:
    """The services of one gRPC process, and the stores they stand on."""
    stores = stores_of(directory, shared.read(), master_key, follow=True)
    with _opened(stores, master_key, shared, counters) as authenticator:
        yield GrpcServices(
            settings=Live(shared, lambda settings: settings).current,
            authenticator=authenticator,
            engine=stores.engine,
            verdicts=KeyVerdicts(stores.control_version),
            probes=telemetry_probes(stores),
            counters=counters,
            access_log=write_served,
        )


@contextmanager
def _opened(
    stores: Stores, master_key: bytes, shared: SharedSettings, counters: Counters
) -> Iterator[Authenticator]:
    environment = shared.read().service.environment
    ingest = Live(shared, lambda settings: settings.ingest)
    flusher = Flusher(stores.engine, ingest.current, counters)
    try:
        with flusher.running(), closing_unused(stores.engine):
            yield Authenticator(stores.control, key_pepper(master_key), environment)
    finally:
        stores.close()
