"""A tenant's store, as the console reads it: through the stores of the surfaces, with patience."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from fleetcast.accounts import Identity
from fleetcast.accounts.tenants import check_name
from fleetcast.console.answers import ConsoleRefused
from fleetcast.errors import OperatorError, Refused, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.accounts import OpenSession, Tenant
    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import Plane

T = TypeVar("T")


def known_tenant(services: ConsoleServices, name: str) -> Tenant:
    """The tenant of a name. Raises `ConsoleRefused`, `ControlStoreUnavailable`."""
    tenant = None
    with suppress(OperatorError):
        check_name(name)
        tenant = services.control.ask(lambda tables: tables.tenant(name))
    if tenant is None:
        raise ConsoleRefused(404, "tenant_unknown", "There is no such tenant: it may be deleted.")
    return tenant


def read_plane(
    services: ConsoleServices, session: OpenSession, name: str, read: Callable[[Plane], T]
) -> T:
    """Result of a read of a tenant's store.

    Raises `ConsoleRefused`, `Refused` for what the contract refuses, `ControlStoreUnavailable`.
    """
    tenant = known_tenant(services, name)
    identity = Identity(
        account_id=tenant.account_id,
        tenant_key=tenant.name,
        key_id=session.token.token_id,
        environment=services.settings().service.environment,
        scopes=frozenset({"topology:read", "predictions:read"}),
        plan=tenant.plan,
        live_ingest=False,
        status=tenant.status,
    )

    def run() -> T:
        plane: Plane | None = None
        try:
            plane = services.stores.open(identity, request_id="console")
            return read(plane)
        except StoreError as error:
            services.stores.release(identity, plane, error)
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
