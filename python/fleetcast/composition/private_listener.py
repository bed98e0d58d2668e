"""The applications of the private listener, on the stores of one process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.admin.app import AdminApp
from fleetcast.admin.hosts import behind_known_hosts
from fleetcast.admin.readiness import Readiness
from fleetcast.admin.tenant_gauges import TenantGauges
from fleetcast.composition.closing import closing_unused
from fleetcast.composition.console_application import console_application
from fleetcast.composition.probes import readiness_probes
from fleetcast.composition.shared_settings import Live
from fleetcast.console.app import MOUNTED_AT
from fleetcast.metrics import Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores
    from fleetcast.metrics import Shared


@contextmanager
def private_application(
    directory: DataDirectory,
    stores: Stores,
    settings: SharedSettings,
    shared: Shared,
) -> Iterator[WSGIApplication]:
    """Makes probes, metrics and the description of the API, and below `/console` the console."""
    engine = stores.engine
    totals = Totals(shared, "fleetcast_")
    limits = Live(settings, lambda settings: settings.limits)
    families = Live(settings, lambda settings: settings.forecast.families)
    gauges = TenantGauges(stores.control.tenants, engine.glance)
    probes = readiness_probes(stores, families.current)
    readiness = Readiness(totals, _surfaces(settings.read()), probes)
    admin = AdminApp(totals=totals, readiness=readiness, gauges=gauges, limits=limits.current)
    running = console_application(
        directory,
        stores,
        settings,
        shared,
        totals=totals,
        readiness=readiness,
        gauges=gauges,
    )
    with running as console, closing_unused(engine):
        # Names of the listener in addition to the loopback names.
        hosts = Live(settings, lambda settings: (settings.admin.address, *settings.admin.hosts))
        yield behind_known_hosts(_by_path(admin, console), hosts.current)


def _by_path(admin: WSGIApplication, console: WSGIApplication) -> WSGIApplication:
    """Sends `/` and requests below the console's path to the console, all others to `admin`."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        is_console = path == "/" or f"{path}/".startswith(f"{MOUNTED_AT}/")
        return (console if is_console else admin)(environ, start_response)

    return application


def _surfaces(settings: Settings) -> tuple[str, ...]:
    """Surfaces that must serve for the service to be ready."""
    addresses = {"grpc": settings.grpc.address, "adapters": settings.adapters.address}
    return ("http", *(name for name, address in addresses.items() if address != "off"))
