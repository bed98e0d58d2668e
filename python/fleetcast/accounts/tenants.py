"""Tenants: how they are made, changed and deleted."""

from __future__ import annotations

import re
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fleetcast.accounts.audited import AuditedRecords, unaudited
from fleetcast.engine import ApiKey, Tenant, UsageRecord
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetcast.accounts.audited import Audit
    from fleetcast.accounts.store import ControlStore
    from fleetcast.engine import Engine, RecordsTransaction

PLANS = ("guest", "free", "pro", "enterprise")
PLAN_DEFAULT = "pro"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class Tenants(AuditedRecords):
    """The tenants of one data directory."""

    def __init__(
        self,
        store: ControlStore,
        engine: Engine,
        clock: Callable[[], float] = time.time,
        audit: Audit = unaudited,
    ) -> None:
        super().__init__(store, clock, audit)
        self._engine = engine

    def create(
        self,
        name: str,
        *,
        plan: str = PLAN_DEFAULT,
        live_ingest: bool = True,
        retention_seconds: int | None = None,
    ) -> Tenant:
        """Makes a tenant and its data plane.

        The plane is made before the record can be seen. A crash in between leaves an unused plane
        and no tenant. Raises `OperatorError`, `StoreError`, `ControlStoreUnavailable`.
        """
        check_name(name)
        check_attributes(plan, retention_seconds)
        tenant = Tenant(
            name=name,
            account_id=str(uuid.uuid4()),
            plan=plan,
            live_ingest=live_ingest,
            retention_seconds=retention_seconds,
            disabled=False,
            created_at=self.now(),
        )
        with self._store.write() as view:
            _refuse_known(view, name)
            self._engine.create_plane(tenant.account_id)
            if retention_seconds is not None:
                self._engine.set_retention(tenant.account_id, name, retention_seconds)
            tenant.put(view)
        self._audit("tenant created", tenant=name, account_id=tenant.account_id, plan=plan)
        return tenant

    def adopt(self, saved: Tenant, name: str, restore: Callable[[str], None]) -> Tenant:
        """Adds a tenant of a backup under a new name and with a new account.

        `restore` makes the plane of the account that it is given. A crash in between leaves an
        unused plane and no tenant. Raises `OperatorError`, `StoreError`, `ControlStoreUnavailable`.
        """
        check_name(name)
        with self._store.read() as view:
            _refuse_known(view, name)
        account_id, created_at = str(uuid.uuid4()), self.now()
        tenant = saved.replace(name=name, account_id=account_id, created_at=created_at)
        restore(account_id)
        with self._store.write() as view:
            _refuse_known(view, name)
            tenant.put(view)
        self._audit("tenant restored", tenant=name, account_id=account_id, saved_as=saved.name)
        return tenant

    def all(self) -> list[Tenant]:
        """Returns all tenants, sorted by name. Raises `ControlStoreUnavailable`."""
        return self._store.tenants()

    def get(self, name: str) -> Tenant:
        """Returns the tenant of a name. Raises `OperatorError`, `ControlStoreUnavailable`."""
        with self._store.read() as view:
            return known_tenant(view, name)

    def change(self, name: str, **attributes: Any) -> Tenant:  # noqa: ANN401 - types of the record
        """Replaces `plan`, `live_ingest`, `retention_seconds` or `disabled`.

        Every process applies a new retention at once. Raises `OperatorError`, `StoreError`,
        `ControlStoreUnavailable`.

        Example: `change("acme", retention_seconds=90 * 86_400)` keeps 90 days.
        """
        with self._store.write() as view:
            tenant = known_tenant(view, name).replace(**attributes)
            check_attributes(tenant.plan, tenant.retention_seconds)
            tenant.put(view)
            if "retention_seconds" in attributes:
                self._engine.set_retention(tenant.account_id, name, tenant.retention_seconds)
        self._audit("tenant changed", tenant=name, account_id=tenant.account_id, **attributes)
        return tenant

    def keep_hours(self, name: str, seconds: int | None) -> bool:
        """Sets how long the hours of expired rows are kept; `None` keeps no hours.

        Returns false if the store is being compacted: then nothing has changed. Raises
        `OperatorError` if hours would go before their rows, `StoreError`,
        `ControlStoreUnavailable`.

        Example: `keep_hours("acme", 5 * 365 * 86_400)` keeps hourly values for five years.
        """
        tenant = self.get(name)
        retention = tenant.retention_seconds
        if seconds is not None and seconds <= (retention or 0):
            message = f"hours must be kept longer than rows, which are kept {retention} s"
            raise OperatorError(message)
        if not self._engine.plane(tenant.account_id, name).keep_hours(seconds):
            return False
        account_id = tenant.account_id
        self._audit(
            "tenant changed", tenant=name, account_id=account_id, keep_hours_seconds=seconds
        )
        return True

    @contextmanager
    def deleting(self, name: str) -> Iterator[Tenant]:
        """Deletes the tenant's record and its keys after the block, which destroys its plane.

        The tenant is disabled first, so that no write is acknowledged whose data is about to go.
        After a crash in between, delete the tenant again. Raises `OperatorError`,
        `ControlStoreUnavailable`.
        """
        tenant = self.change(name, disabled=True)
        yield tenant
        with self._store.write() as view:
            for key_id, key in ApiKey.all(view).items():
                if key.tenant == name:
                    ApiKey.delete(view, key_id)
            Tenant.delete(view, name)
            UsageRecord.delete(view, tenant.account_id)
        self._audit("tenant deleted", tenant=name, account_id=tenant.account_id)


def _refuse_known(view: RecordsTransaction, name: str) -> None:
    """Raises `OperatorError` if a tenant already has the name."""
    if Tenant.get(view, name) is not None:
        message = f"tenant {name} exists already"
        raise OperatorError(message)


def known_tenant(view: RecordsTransaction, name: str) -> Tenant:
    """Returns the tenant of a name. Raises `OperatorError` if there is no such tenant."""
    tenant = Tenant.get(view, name)
    if tenant is None:
        message = f"there is no tenant {name}"
        raise OperatorError(message)
    return tenant


def check_name(name: str) -> None:
    """Raises `OperatorError` if the name is not a slug."""
    if not _NAME.fullmatch(name):
        message = (
            f"tenant name {name!r} must be 1 to 63 of a-z, 0-9 and hyphens, not a hyphen first"
        )
        raise OperatorError(message)


def check_attributes(plan: str, retention_seconds: int | None) -> None:
    """Raises `OperatorError` for an unknown plan or an empty retention."""
    if plan not in PLANS:
        message = f"plan {plan!r} must be one of {', '.join(PLANS)}"
        raise OperatorError(message)
    if retention_seconds is not None and retention_seconds < 1:
        message = "the retention must be at least 1s"
        raise OperatorError(message)
