"""The applications of the private listener, on the stores of one process."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.accounts import Authenticator, Operators, TenantList, key_pepper
from fleetcast.admin.app import AdminApp
from fleetcast.admin.processes import process_list
from fleetcast.admin.readiness import Readiness
from fleetcast.admin.tenant_gauges import GaugedTenant, TenantGauges
from fleetcast.composition.background import background
from fleetcast.composition.closing import closing_unused
from fleetcast.composition.probes import readiness_probes
from fleetcast.composition.shared_settings import Live
from fleetcast.console.app import MOUNTED_AT, ConsoleApp
from fleetcast.console.counts import record_counts, refusal_counts
from fleetcast.console.guesses import Guesses
from fleetcast.console.history import STEP_SECONDS, History
from fleetcast.console.services import ConsoleServices
from fleetcast.console.sessions import Sessions
from fleetcast.console.tenant_reads import TenantReads
from fleetcast.extras import is_installed
from fleetcast.metrics import Counters, Totals
from fleetcast.surface.services import SurfaceServices
from fleetcast.surface.stores import TenantStores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.config import Settings
    from fleetcast.forecast.serving.hindsight import Hindsight
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Shared

_MOMENTS_OF_RECORDS = 4
_MOMENTS_OF_REFUSALS = 91


@contextmanager
def private_application(
    directory: DataDirectory,
    stores: Stores,
    master_key: bytes,
    settings: SharedSettings,
    shared: Shared,
) -> Iterator[WSGIApplication]:
    """Probes, metrics and the description of the API; below `/console`, the console."""
    engine = stores.engine
    totals = Totals(shared, "fleetcast_")
    limits = Live(settings, lambda settings: settings.limits)
    families = Live(settings, lambda settings: settings.forecast.families)
    gauges = TenantGauges(partial(_tenants, TenantList(stores.control)), engine.glance)
    probes = readiness_probes(stores, families.current)
    readiness = Readiness(totals, _surfaces(settings.read()), probes)
    admin = AdminApp(totals=totals, readiness=readiness, gauges=gauges, limits=limits.current)
    records = History(record_counts(shared), _MOMENTS_OF_RECORDS)
    refusals = History(refusal_counts(shared), _MOMENTS_OF_REFUSALS)
    surface = SurfaceServices(
        authenticator=Authenticator(
            stores.control, key_pepper(master_key), settings.read().service.environment
        ),
        engine=engine,
        counters=Counters(shared),
    )
    operators = Operators(stores.control, master_key)
    console = ConsoleApp(
        ConsoleServices(
            control=stores.control,
            sessions=Sessions(operators, master_key, Guesses(directory.console_limiter)),
            stores=TenantStores(surface, "console"),
            reads=TenantReads(),
            stats=gauges.stats,
            records=records,
            refusals=refusals,
            totals=totals,
            readiness=readiness.look,
            processes=process_list,
            settings=Live(settings, lambda settings: settings).current,
            hindsight=_hindsight(stores.predictions) if is_installed("forecast") else None,
        )
    )
    with _looking(records, refusals), closing_unused(engine):
        yield _by_path(admin, console)


def _by_path(admin: WSGIApplication, console: WSGIApplication) -> WSGIApplication:
    """The console has what lies below its path, and the other all the rest."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        is_console = f"{environ['PATH_INFO']}/".startswith(f"{MOUNTED_AT}/")
        return (console if is_console else admin)(environ, start_response)

    return application


def _looking(*histories: History) -> AbstractContextManager[None]:
    """Adds to histories of counters until the end of the block."""

    def run(stopped: threading.Event) -> None:
        while not stopped.wait(STEP_SECONDS):
            for history in histories:
                history.look()

    return background("history", run)


def _hindsight(store: PredictionStore) -> Callable[[], Hindsight]:
    """Loaded by the first request that needs it: its libraries take the better part of a second."""
    lock = threading.Lock()
    loaded: list[Hindsight] = []

    def load() -> Hindsight:
        with lock:
            if not loaded:
                from fleetcast.forecast.serving.hindsight import Hindsight  # noqa: PLC0415 - slow to load
                from fleetcast.forecast.serving.releases import Releases  # noqa: PLC0415 - slow to load

                loaded.append(Hindsight(store, Releases(store)))
            return loaded[0]

    return load


def _surfaces(settings: Settings) -> tuple[str, ...]:
    """Those that must serve."""
    addresses = {"grpc": settings.grpc.address, "adapters": settings.adapters.address}
    return ("http", *(name for name, address in addresses.items() if address != "off"))


def _tenants(tenants: TenantList) -> list[GaugedTenant]:
    """Raises `ControlStoreUnavailable`."""
    return [GaugedTenant(tenant.name, tenant.account_id) for tenant in tenants.read()]
