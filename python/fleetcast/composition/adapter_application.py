"""The listener for other protocols, as each of its workers opens it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.adapters.app import create_app
from fleetcast.composition.forecasting import forecasting
from fleetcast.composition.http_parts import HttpParts
from fleetcast.composition.probes import telemetry_probes
from fleetcast.composition.serving_stores import serving_stores
from fleetcast.composition.shared_settings import Live
from fleetcast.config.name_mapping import read_names
from fleetcast.engine import Service
from fleetcast.http.rules import adapter_rules
from fleetcast.http.services import HttpServices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.composition.http_parts import Opening
    from fleetcast.config import Settings


@contextmanager
def adapter_application(opening: Opening) -> Iterator[Live[HttpParts]]:
    """Opens the adapter listener as `http_application` does. Raises `OperatorError`."""
    directory, stores, counters = opening.directory, opening.stores, opening.counters
    mapping = read_names(directory.adapters)
    with serving_stores(stores, opening.settings, counters) as authenticator:
        forecast = Live(opening.settings, lambda settings: settings.forecast)
        predictions = forecasting(stores.predictions, forecast.current, counters)

        def build(settings: Settings) -> HttpParts:
            files = directory.limiter, directory.adapter_limiter
            kept = stores.predictions.kept
            rules = adapter_rules(settings, *files, counters, mapping, kept=kept)
            service = Service(authenticator, stores.engine.open_planes, rules)
            services = HttpServices(
                settings=settings,
                service=service,
                engine=stores.engine,
                probes={"telemetry": telemetry_probes(stores)},
                counters=counters,
                predictions=predictions,
            )
            return HttpParts(service, create_app(services))

        yield Live(opening.settings, build)
