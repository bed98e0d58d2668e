"""The process behind the private listener."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStore, TenantList
from fleetcast.admin.app import AdminApp
from fleetcast.admin.tenants import Tenant, TenantGauges
from fleetcast.composition.probes import readiness_probes
from fleetcast.composition.shared_settings import Board, Live
from fleetcast.engine import peek
from fleetcast.forecast.serving.store import PredictionStore
from fleetcast.http.server.arbiter import HttpServer
from fleetcast.http.server.limits import Limits
from fleetcast.installation.directory import DataDirectory
from fleetcast.logs import configure_logs, logging_config
from fleetcast.metrics import Shared
from fleetcast.supervisor.child import end_with_supervisor, read_brief, report_ready

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from fleetcast.supervisor.child import Brief

_THREADS = 4


def main() -> None:
    """Serves until SIGTERM, or until the supervisor is gone."""
    brief = read_brief()
    configure_logs("admin")
    end_with_supervisor()
    server = HttpServer(
        lambda: admin_application(brief),
        limits=Limits,
        settings={
            "bind": f"fd://{brief.listener_fd}",
            "workers": 1,
            "threads": _THREADS,
            "logconfig_dict": logging_config(),
            "post_fork": lambda _arbiter, _worker: end_with_supervisor(),
            "post_worker_init": lambda _worker: report_ready(brief),
        },
    )
    server.run()


@contextmanager
def admin_application(brief: Brief) -> Iterator[WSGIApplication]:
    """The WSGI application of the private listener, and what it looks at."""
    directory = DataDirectory(brief.data)
    store = ControlStore(directory.control)
    predictions = PredictionStore(directory.forecast)
    board = Board(brief.board_fd)
    families = Live(board, lambda settings: settings.forecast.families)
    limits = Live(board, lambda settings: settings.limits)
    try:
        yield AdminApp(
            shared=Shared(brief.counters_fd),
            surfaces=("http",) if brief.settings.grpc.address == "off" else ("http", "grpc"),
            probes=readiness_probes(directory, store, predictions, families.current),
            gauges=TenantGauges(partial(_tenants, directory, TenantList(store)), peek),
            limits=limits.current,
        )
    finally:
        predictions.close()
        store.close()


def _tenants(directory: DataDirectory, tenants: TenantList) -> list[Tenant]:
    """Raises `ControlStoreUnavailable`."""
    planes = str(directory.planes)
    return [Tenant(tenant.name, f"{planes}/{tenant.account_id}") for tenant in tenants.read()]


if __name__ == "__main__":
    main()
