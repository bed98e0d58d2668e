"""Checks of keys that turn: who began it and when, how much is left, and what ends it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError, StoreError, StoreMissing
from fleetcast.installation.audit_log import last_line
from fleetcast.installation.backend import handover_of
from fleetcast.installation.diagnosis.finding import Finding
from fleetcast.security.master_key import load_master_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetcast.config import Settings
    from fleetcast.engine import Plane, Tenant
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores

_MASTER = "change of the master key"


def check_turn(directory: DataDirectory, settings: Settings) -> Iterator[Finding]:
    """Tells of a change of the master key that is not complete."""
    try:
        place = handover_of(directory, settings)
        handover = place.read()
        nodes = place.nodes_left() if handover else []
    except OperatorError as error:
        yield Finding.failure(_MASTER, str(error), "put it back, with the old master key")
        return
    except StoreError:
        return  # the check of the database tells
    if handover is None:
        return
    detail = (
        f"from {handover.old_id} to {handover.new_id}, begun at {handover.begun_at} by"
        f" {handover.begun_by}, not complete: both keys are needed"
    )
    advice = "fleetcast master-key rotate"
    if handover.file is not None:
        advice = f"let the settings name the key in {handover.file}, then {advice}"
    if nodes:
        advice += f" on each of {', '.join(nodes)}"
    yield Finding.warning(_MASTER, detail, advice)


def check_planes(directory: DataDirectory, settings: Settings, stores: Stores) -> Iterator[Finding]:
    """Counts the data keys that a change of the master key has not reached."""
    handover = stores.handover.read()
    if handover is None:
        return
    new, _ = handover.keys(load_master_key(directory.root, settings.security))
    accounts, behind = stores.planes(), 0
    for account_id in accounts:
        with suppress(StoreMissing):
            behind += not stores.engine.is_wrapped_by(account_id, new)
    detail = f"{behind} of {len(accounts)} are under master key {handover.old_id}"
    yield Finding.warning("data keys", detail, "fleetcast master-key rotate")


def turn_of(plane: Plane, tenant: Tenant, audit_log: Path) -> Finding | None:
    """Tells of the turn of a tenant's data key. Raises `StoreError`."""
    left = plane.old_key_bytes()
    if left is None:
        return None
    begun = last_line(audit_log, "data key changed", tenant.account_id)
    who = f", begun at {begun['timestamp']} by user {begun['user_id']}" if begun else ""
    detail = f"its data key changes{who}: {left} bytes are left under the old key"
    advice = f"the upkeep of the service ends that; without it, fleetcast compact {tenant.name}"
    return Finding.warning(f"tenant {tenant.name}", detail, advice)
