"""The public HTTP listener, as each of its workers opens it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.composition.forecasting import forecasting
from fleetcast.composition.http_parts import HttpParts
from fleetcast.composition.probes import http_probes
from fleetcast.composition.serving_stores import serving_stores
from fleetcast.composition.shared_settings import Live
from fleetcast.composition.simulation import simulated
from fleetcast.engine import Service
from fleetcast.http.app import create_app
from fleetcast.http.rules import public_rules
from fleetcast.http.services import HttpServices
from fleetcast.metrics import AccountRequests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.composition.http_parts import Opening
    from fleetcast.config import Settings


@contextmanager
def http_application(opening: Opening) -> Iterator[Live[HttpParts]]:
    """Opens the service and the WSGI application of one worker, and their stores.

    Enter it in every worker after the fork, never before, because an open store does not survive a
    fork. Changed settings make a new application on the same stores. The application that was
    current when a request began answers the request.
    """
    directory, stores, counters = opening.directory, opening.stores, opening.counters
    with serving_stores(stores, opening.settings, counters) as authenticator:
        usage = stores.usage(AccountRequests(counters.shared), opening.run)
        forecast = Live(opening.settings, lambda settings: settings.forecast)
        predictions = forecasting(stores.predictions, forecast.current, counters)
        simulate = simulated(directory.simulation)

        def build(settings: Settings) -> HttpParts:
            simulates, kept = settings.topology.simulate, stores.predictions.kept
            rules = public_rules(
                settings, directory.limiter, counters, simulates=simulates, kept=kept
            )
            service = Service(authenticator, stores.engine.open_planes, rules)
            application = create_app(
                HttpServices(
                    settings=settings,
                    service=service,
                    engine=stores.engine,
                    probes=http_probes(stores),
                    counters=counters,
                    predictions=predictions,
                    simulate=simulate if simulates else None,
                    requests_total=usage.requests_total,
                )
            )
            return HttpParts(service, application)

        yield Live(opening.settings, build)
