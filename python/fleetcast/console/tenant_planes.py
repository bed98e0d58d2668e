"""Reads of a tenant's plane for the console, as other surfaces open it, and with a time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fleetcast.console.answers import ConsoleRefused
from fleetcast.engine import Tenant
from fleetcast.errors import Refused, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Plane

T = TypeVar("T")


def known_tenant(services: ConsoleServices, name: str) -> Tenant:
    """Returns the tenant of a name. Raises `ConsoleRefused`, `ControlStoreUnavailable`."""
    with services.control.read() as view:
        tenant = Tenant.get(view, name)
    if tenant is None:
        raise ConsoleRefused(404, "tenant_unknown", "There is no such tenant: it may be deleted.")
    return tenant


def read_plane(services: ConsoleServices, name: str, read: Callable[[Plane], T]) -> T:
    """Runs a read of a tenant's store and returns its result.

    Raises `ConsoleRefused`, `ControlStoreUnavailable`, and `Refused` for a refusal of the contract.
    """
    tenant = known_tenant(services, name)

    def run() -> T:
        plane: Plane | None = None
        try:
            plane = services.planes.open(tenant, request_id="console")
            return read(plane)
        except StoreError as error:
            services.planes.release(tenant, plane, error)
            raise

    try:
        return services.reads.run(name, run)
    except StoreError as error:
        message = f"The store of {name} cannot be read now; the log says why."
        raise ConsoleRefused(503, "telemetry_unavailable", message) from error
    except Refused as refusal:
        if refusal.args[0] != "tenant_unavailable":
            raise
        message = f"The store of {name} cannot be opened; the log says why."
        raise ConsoleRefused(503, "tenant_unavailable", message) from refusal
