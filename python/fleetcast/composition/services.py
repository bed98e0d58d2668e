"""Services of a process: opened by an HTTP worker after its fork, by a gRPC process at start."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts import KEY_PEPPER
from fleetcast.adapters.app import create_app as create_adapter_app
from fleetcast.composition.closing import closing_unused
from fleetcast.composition.flushing import Flusher
from fleetcast.composition.forecasting import Forecasting
from fleetcast.composition.probes import http_probes, telemetry_probes
from fleetcast.composition.shared_settings import Live
from fleetcast.composition.simulation import simulated
from fleetcast.config.name_mapping import read_names
from fleetcast.engine import Authenticator, Service
from fleetcast.grpc.services import GrpcServices
from fleetcast.http.app import create_app
from fleetcast.http.rules import adapter_rules, public_rules
from fleetcast.http.services import HttpServices
from fleetcast.installation.backend import stores_of
from fleetcast.log_lines import write_served
from fleetcast.metrics import AccountRequests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Counters


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Everything from which a worker of an HTTP listener makes its application after the fork."""

    directory: DataDirectory
    stores: Stores
    settings: SharedSettings
    counters: Counters
    run: str
    """Name of this run of the service."""


class HttpParts(NamedTuple):
    """Parts of a listener that are made again when settings change."""

    service: Service
    """Decides about requests."""
    application: WSGIApplication


@contextmanager
def http_application(opening: Opening) -> Iterator[Live[HttpParts]]:
    """Opens the service and the WSGI application of one worker, and their stores.

    Enter it in every worker after the fork, never before, because an open store does not survive a
    fork. Changed settings make a new application on the same stores. The application that was
    current when a request began answers the request.
    """
    directory, stores, counters = opening.directory, opening.stores, opening.counters
    with _opened(stores, opening.settings, counters) as authenticator:
        usage = stores.usage(AccountRequests(counters.shared), opening.run)
        predictions = stores.predictions
        forecast = Live(opening.settings, lambda settings: settings.forecast)
        forecasting = Forecasting(predictions, forecast.current, counters)
        simulate = simulated(directory.simulation)

        def build(settings: Settings) -> HttpParts:
            simulates = settings.topology.simulate
            rules = public_rules(settings, directory.limiter, counters, simulates=simulates)
            service = Service(authenticator, stores.engine.open_planes, rules)
            application = create_app(
                HttpServices(
                    settings=settings,
                    service=service,
                    engine=stores.engine,
                    probes=http_probes(stores),
                    counters=counters,
                    predictor=forecasting,
                    simulate=simulate if simulates else None,
                    requests_total=usage.requests_total,
                    access_log=write_served,
                )
            )
            return HttpParts(service, application)

        yield Live(opening.settings, build)


@contextmanager
def adapter_application(opening: Opening) -> Iterator[Live[HttpParts]]:
    """Opens the adapter listener as `http_application` does. Raises `OperatorError`."""
    directory, stores, counters = opening.directory, opening.stores, opening.counters
    mapping = read_names(directory.adapters)
    with _opened(stores, opening.settings, counters) as authenticator:

        def build(settings: Settings) -> HttpParts:
            files = directory.limiter, directory.adapter_limiter
            rules = adapter_rules(settings, *files, counters, mapping)
            service = Service(authenticator, stores.engine.open_planes, rules)
            services = HttpServices(
                settings=settings,
                service=service,
                engine=stores.engine,
                probes={"telemetry": telemetry_probes(stores)},
                counters=counters,
                access_log=write_served,
            )
            return HttpParts(service, create_adapter_app(services))

        yield Live(opening.settings, build)


@contextmanager
def grpc_services(
    directory: DataDirectory, master_key: bytes, shared: SharedSettings, counters: Counters
) -> Iterator[GrpcServices]:
    """Opens the services of one gRPC process, and their stores."""
    stores = stores_of(directory, shared.read(), master_key, follow=True)
    with _opened(stores, shared, counters) as authenticator:
        yield GrpcServices(
            settings=Live(shared, lambda settings: settings).current,
            settings_descriptor=shared.descriptor,
            authenticator=authenticator,
            engine=stores.engine,
            probes=telemetry_probes(stores),
            counters=counters,
            access_log=write_served,
        )


@contextmanager
def _opened(stores: Stores, shared: SharedSettings, counters: Counters) -> Iterator[Authenticator]:
    environment = shared.read().service.environment
    ingest = Live(shared, lambda settings: settings.ingest)
    flusher = Flusher(stores.engine, ingest.current, counters)
    try:
        with flusher.running(), closing_unused(stores.engine):
            yield Authenticator(stores.control.records, KEY_PEPPER, environment)
    finally:
        stores.close()
