"""The console on the stores of one process."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.accounts import KEY_PEPPER, ConsoleSessions, Operators
from fleetcast.admin.processes import process_list
from fleetcast.composition.background import repeating
from fleetcast.composition.findings import Findings
from fleetcast.composition.loading import loaded_once
from fleetcast.composition.shared_settings import Live
from fleetcast.console.app import ConsoleApp
from fleetcast.console.counts import (
    of_all_tenants,
    record_counts,
    refusal_counts,
    refused_key_counts,
)
from fleetcast.console.guesses import Guesses
from fleetcast.console.history import STEP_SECONDS, History
from fleetcast.console.services import ConsoleServices
from fleetcast.console.sessions import Sessions
from fleetcast.console.tenant_reads import TenantReads
from fleetcast.engine import Authenticator, Service
from fleetcast.extras import is_installed
from fleetcast.http.rules import public_rules
from fleetcast.logs import audit
from fleetcast.metrics import Counters
from fleetcast.surface.planes import TenantPlanes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.admin.readiness import Readiness
    from fleetcast.admin.tenant_gauges import TenantGauges
    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.config import Settings
    from fleetcast.forecast.serving.hindsight import Hindsight
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Shared, Totals

_MOMENTS_OF_RECORDS = 4
_MOMENTS_OF_REFUSALS = 91
_MOMENTS_OF_DAY = 2_881
_DAY_STEP_SECONDS = 30.0
_MOMENTS_OF_KEYS = 16
_KEYS_STEP_SECONDS = 60.0


@contextmanager
def console_application(
    directory: DataDirectory,
    stores: Stores,
    settings: SharedSettings,
    shared: Shared,
    *,
    totals: Totals,
    readiness: Readiness,
    gauges: TenantGauges,
) -> Iterator[ConsoleApp]:
    """Makes the console, which reads the counters until the end of the block."""
    counted = record_counts(shared)
    records = History(counted, _MOMENTS_OF_RECORDS)
    day = History(of_all_tenants(counted), _MOMENTS_OF_DAY, step_seconds=_DAY_STEP_SECONDS)
    refusals = History(refusal_counts(shared), _MOMENTS_OF_REFUSALS)
    keys = History(refused_key_counts(shared), _MOMENTS_OF_KEYS, step_seconds=_KEYS_STEP_SECONDS)
    counters = Counters(shared)
    operators = Operators(stores.control)
    kept = ConsoleSessions(stores.control, audit=audit)
    services = ConsoleServices(
        control=stores.control,
        sessions=Sessions(operators, kept, Guesses(directory.console_limiter)),
        planes=TenantPlanes(stores.engine),
        reads=TenantReads(),
        stats=gauges.stats,
        records=records,
        day=day,
        refusals=refusals,
        refused_keys=keys,
        totals=totals,
        readiness=readiness.look,
        processes=process_list,
        disk=lambda: shutil.disk_usage(directory.root)[::2],
        findings=Findings(directory.root).look,
        settings=Live(settings, lambda settings: settings).current,
        evaluator=_evaluator(directory, stores, settings, counters),
        hindsight=_hindsight(stores.predictions) if is_installed("forecast") else None,
    )

    def look() -> None:
        for history in (records, day, refusals, keys):
            history.look()

    with repeating("history", look, STEP_SECONDS, "the counters are not read"):
        yield ConsoleApp(services)


def _evaluator(
    directory: DataDirectory,
    stores: Stores,
    settings: SharedSettings,
    counters: Counters,
) -> Callable[[], Service]:
    """Makes the service that answers questions; it admits no request, so it checks no key."""
    environment = settings.read().service.environment
    keys = Authenticator(stores.control.records, KEY_PEPPER, environment)

    def build(settings: Settings) -> Service:
        rules = public_rules(settings, directory.limiter, counters)
        return Service(keys, stores.engine.open_planes, rules)

    return Live(settings, build).current


def _hindsight(store: PredictionStore) -> Callable[[], Hindsight]:
    """Loads on the first request that needs it, because its libraries take nearly a second."""

    def load() -> Hindsight:
        from fleetcast.forecast.serving.hindsight import Hindsight  # noqa: PLC0415 - slow to load
        from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415 - slow to load

        return Hindsight(store, Releases(store))

    return loaded_once(load)
