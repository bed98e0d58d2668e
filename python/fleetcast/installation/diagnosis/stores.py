"""Checks of the control store and of every tenant's plane."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.config.sections import POSTGRESQL
from fleetcast.errors import OperatorError, StoreError
from fleetcast.installation.backend import stores_of
from fleetcast.installation.cluster_stores import ClusterStores
from fleetcast.installation.diagnosis.database import check_database, check_objects
from fleetcast.installation.diagnosis.finding import Finding
from fleetcast.installation.diagnosis.turns import check_planes, turn_of
from fleetcast.installation.read_only import readable
from fleetcast.metrics import sample
from fleetcast.security.master_key import load_master_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fleetcast.config import Settings
    from fleetcast.engine import Engine, Tenant
    from fleetcast.installation.directory import DataDirectory

_CLOCK_SLACK_SECONDS = 60
_DAY_SECONDS = 86_400


def check_stores(
    directory: DataDirectory, settings: Settings, metrics: str | None
) -> Iterator[Finding]:
    """Checks master key, control store, each tenant's plane, and planes without a tenant.

    `metrics` is the text of the service's metrics, `None` if the service cannot be asked.
    """
    try:
        master_key = load_master_key(directory.root, settings.security)
    except OperatorError as error:
        detail, _, advice = str(error).partition(": ")
        yield Finding.failure("master key", detail, advice)
        return
    is_shared = settings.store.backend == POSTGRESQL
    mend = "see that PostgreSQL can be reached" if is_shared else "restore it from a backup"
    with ExitStack() as stack:
        try:
            place = stack.enter_context(readable(directory))
            stores = stack.enter_context(closing(stores_of(place, settings, master_key)))
        except OperatorError as error:
            yield Finding.failure("control store", str(error), "correct store.database")
            return
        try:
            stores.prepare()
            tenants = stores.control.tenants()
        except OperatorError as error:
            detail, _, advice = str(error).partition(": ")
            check = "objects" if detail.startswith("store.objects") else "master key"
            yield Finding.failure(check, detail, advice)
            return
        except (ControlStoreUnavailable, StoreError) as error:
            yield Finding.failure("control store", str(error), mend)
            return
        yield Finding.good("control store", f"tenants: {len(tenants)}")
        if isinstance(stores, ClusterStores):
            yield from check_database(stores.cluster, settings.store)
            yield from check_objects(stores.cluster)
        yield from _order_of_time(tenants)
        yield from check_planes(directory, settings, stores)
        for tenant in tenants:
            yield _plane(stores.engine, tenant, metrics, directory.audit_log)
    if not is_shared:
        yield from _unused(directory, tenants)


def _order_of_time(tenants: Sequence[Tenant]) -> Iterator[Finding]:
    ahead = max((tenant.created_at for tenant in tenants), default=0) - time.time()
    if ahead > _CLOCK_SLACK_SECONDS:
        detail = f"a tenant was made {ahead:.0f} s from now: the clock was ahead then, or is behind"
        yield Finding.failure("clock against records", detail, "set the clock")


def _plane(engine: Engine, tenant: Tenant, metrics: str | None, audit_log: Path) -> Finding:
    """Opens a tenant's plane, and compares the clock with its writes."""
    check = f"tenant {tenant.name}"
    try:
        plane = engine.plane(tenant.account_id, tenant.name)
        plane.ping()
        rows = plane.stats().rows
        plane.follow()
        ahead = plane.ingest_lead_ns() / 1e9
        newest_ns = plane.newest_ingest_ns()
        turning = turn_of(plane, tenant, audit_log)
    except StoreError as error:
        advice = f"fleetcast verify {tenant.name} says what is damaged; restore it from a backup"
        return Finding.failure(check, str(error), advice)
    engine.release(tenant.account_id)
    if ahead:  # by more than the clocks of reads follow
        detail = f"its last write lies {ahead:.0f} s ahead of the clock"
        return Finding.warning(check, detail, "set the clock: reads show it when its time has come")
    silent = 0.0 if newest_ns is None else time.time() - newest_ns / 1e9
    held = _held(tenant, silent, metrics)
    if held is not None:
        detail = f"the clock is {silent / _DAY_SECONDS:.1f} days ahead of its newest write: {held}"
        return Finding.warning(check, detail, "set the clock, if it is wrong")
    return turning or Finding.good(check, f"rows: {rows}")


def _held(tenant: Tenant, silent_seconds: float, metrics: str | None) -> str | None:
    """Says if rows stay that are older than the retention, because the clock may have jumped.

    The service knows. If the service cannot be asked, rows may stay if the last write is a day old
    (O2).
    """
    until = "until the service has seen the clock go on for an hour"
    if metrics is not None:
        shown = sample("fleetcast_tenant_expiry_held", tenant=tenant.name)
        return f"none of its rows expires {until}" if f"\n{shown} 1\n" in metrics else None
    if tenant.retention_seconds is None or silent_seconds <= _DAY_SECONDS:
        return None
    return f"its rows may not expire {until}"


def _unused(directory: DataDirectory, tenants: Sequence[Tenant]) -> Iterator[Finding]:
    known = {tenant.account_id for tenant in tenants}
    try:
        unused = sorted(path.name for path in directory.planes.iterdir() if path.name not in known)
    except OSError as error:
        detail = f"{directory.planes}: {error.strerror}"
        yield Finding.failure("planes", detail, "restore it from a backup")
        return
    if unused:
        detail = f"no tenant has {', '.join(unused)}: left by an interrupted command"
        yield Finding.warning("unused planes", detail, f"remove them from {directory.planes}")
