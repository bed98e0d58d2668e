"""The turn of a tenant's data key, while the service runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetcast.installation.opening import Installation


def begin_turn(installation: Installation, name: str) -> int | None:
    """Gives a tenant a new data key; returns the bytes that are left under the old key.

    Returns `None` while another process compacts the store: no key is made then. Raises
    `OperatorError`, `StoreError`.
    """
    owner = installation.tenants.get(name)
    plane = installation.engine.plane(owner.account_id, owner.name)
    if not plane.rekey():
        return None
    installation.stores.audit()("data key changed", tenant=owner.name, account_id=owner.account_id)
    return plane.old_key_bytes() or 0
