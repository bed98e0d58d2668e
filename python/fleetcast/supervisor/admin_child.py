"""The process behind the private listener."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.accounts import TenantList
from fleetcast.admin.app import AdminApp
from fleetcast.admin.tenant_gauges import TenantFolder, TenantGauges
from fleetcast.composition.probes import readiness_probes
from fleetcast.composition.shared_settings import Live, SharedSettings
from fleetcast.http.server.arbiter import HttpServer
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.installation.backend import stores_of
from fleetcast.metrics import Shared
from fleetcast.supervisor.child import begin, gunicorn_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from fleetcast.config import Settings
    from fleetcast.supervisor.child_configuration import ChildConfiguration

_THREADS = 4


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    configuration = begin("admin")
    server = HttpServer(
        lambda: admin_application(configuration),
        limits=ConnectionLimits,
        settings=gunicorn_settings(configuration, workers=1, threads=_THREADS),
    )
    server.run()


@contextmanager
def admin_application(configuration: ChildConfiguration) -> Iterator[WSGIApplication]:
    """The WSGI application of the private listener, and what it looks at."""
    shared_settings = SharedSettings(configuration.settings_fd)
    settings = shared_settings.read()
    directory, master_key = configuration.directory, configuration.master_key
    stores = stores_of(directory, settings, master_key, follow=True)
    stores.control.open_ahead()
    engine = stores.engine
    families = Live(shared_settings, lambda settings: settings.forecast.families)
    limits = Live(shared_settings, lambda settings: settings.limits)
    try:
        yield AdminApp(
            shared=Shared(configuration.counters_fd),
            surfaces=_surfaces(settings),
            probes=readiness_probes(stores, families.current),
            gauges=TenantGauges(
                partial(_tenants, TenantList(stores.control)),
                lambda account_id: engine.glance(account_id).counts(),
                state=lambda account_id: engine.glance(account_id).state(),
            ),
            limits=limits.current,
        )
    finally:
        stores.close()


def _surfaces(settings: Settings) -> tuple[str, ...]:
    """Those that must serve."""
    addresses = {"grpc": settings.grpc.address, "adapters": settings.adapters.address}
    return ("http", *(name for name, address in addresses.items() if address != "off"))


def _tenants(tenants: TenantList) -> list[TenantFolder]:
    """Raises `ControlStoreUnavailable`."""
    return [TenantFolder(tenant.name, tenant.account_id) for tenant in tenants.read()]


if __name__ == "__main__":
    main()
