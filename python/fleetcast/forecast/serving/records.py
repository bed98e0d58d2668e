"""What is written down of serving: routing decisions, rights to compute, values, open scores."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.forecast.serving.releases import Release, Role
from fleetcast.forecast.serving.store import encode

if TYPE_CHECKING:
    from fleetcast.engine import Plane
    from fleetcast.forecast.serving.releases import Rollout
    from fleetcast.forecast.serving.store import Records

LEASE_NS = 30_000_000_000
"""The longest that one batch may take; a worker that dies holds an entity up no longer."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One entity of one tenant and family, by keyed hash: where its records are found."""

    account_id: str
    family: str
    entity_id: str
    digest: bytes

    @classmethod
    def of(cls, plane: Plane, account_id: str, family: str, entity_id: str) -> Place:
        """Raises `StoreError`."""
        digest = plane.name_hash(f"{family}/{entity_id}".encode())
        return cls(account_id=account_id, family=family, entity_id=entity_id, digest=digest)

    @property
    def key(self) -> bytes:
        """In every table."""
        return f"{self.account_id}/{self.family}/".encode() + self.digest

    @property
    def percentile(self) -> float:
        """A stable number from 0 to 100, another for each entity."""
        return int.from_bytes(self.digest[:8], "big") / 2**64 * 100


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The routing decision of an entity, kept until the rollout changes."""

    assignment_id: str
    rollout_id: str
    role: str

    def release(self, rollout: Rollout) -> Release:
        """Of `rollout`, which is this decision's."""
        release = rollout.canary if self.role == Role.CANARY else rollout.primary
        assert release is not None  # noqa: S101 - decided from this very rollout
        return release


def assigned(records: Records, place: Place, rollout: Rollout) -> Assignment | None:
    """The decision that holds, if there is one."""
    value = records.get("assignments", place.key)
    found = None if value is None else Assignment(**json.loads(value))
    return found if found is not None and found.rollout_id == rollout.rollout_id else None


def assign(records: Records, place: Place, rollout: Rollout) -> Assignment:
    """The decision that holds, made now where there is none."""
    found = assigned(records, place, rollout)
    if found is None:
        canary = rollout.canary is not None and place.percentile < rollout.canary_percent
        found = Assignment(
            assignment_id=str(uuid.uuid4()),
            rollout_id=rollout.rollout_id,
            role=Role.CANARY if canary else Role.PRIMARY,
        )
        records.put("assignments", place.key, encode(vars(found)))
    return found


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one worker to compute one entity, until an instant. `fence` grows."""

    lease_id: str
    fence: int
    expires_at_ns: int


def take_lease(records: Records, place: Place, now_ns: int) -> Lease | None:
    """The right to compute; `None` while somebody else has it."""
    value = records.get("leases", place.key)
    if value is not None and Lease(**json.loads(value)).expires_at_ns > now_ns:
        return None
    lease = Lease(
        lease_id=str(uuid.uuid4()), fence=records.next_fence(), expires_at_ns=now_ns + LEASE_NS
    )
    records.put("leases", place.key, encode(vars(lease)))
    return lease


def end_lease(records: Records, place: Place, lease: Lease, now_ns: int) -> bool:
    """Gives the right back; whether it still was a right, so that its answer counts."""
    value = records.get("leases", place.key)
    if value is None or Lease(**json.loads(value)).fence != lease.fence:
        return False
    records.delete("leases", place.key)
    return now_ns < lease.expires_at_ns


@dataclass(frozen=True, kw_only=True)
class Value:
    """The newest forecast of an entity at all horizons, and who made it by what right."""

    predicted_at_ns: int
    issued_at_ns: int
    quantiles: dict[str, list[float]]
    """By horizon in minutes."""
    tags: dict[str, str]
    model_version: str
    feature_view_id: str
    release_id: str
    role: str
    assignment_id: str
    lease_id: str

    def seal(self, plane: Plane) -> bytes:
        """Under the tenant's key. Raises `StoreError`."""
        return plane.seal(encode(vars(self)))

    @classmethod
    def unseal(cls, plane: Plane, sealed: bytes) -> Value:
        """Raises `StoreError`, `StoreDamaged` for the bytes of somebody else."""
        return cls(**json.loads(plane.unseal(sealed)))


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A forecast whose truth is yet to come: `quantiles` for the target of one horizon."""

    entity_id: str
    issued_at_ns: int
    horizon_minutes: int
    quantiles: list[float]
    model_version: str
    role: str

    def seal(self, plane: Plane) -> bytes:
        """Under the tenant's key. Raises `StoreError`."""
        return plane.seal(encode(vars(self)))

    @classmethod
    def unseal(cls, plane: Plane, sealed: bytes) -> Pending:
        """Raises `StoreError`."""
        return cls(**json.loads(plane.unseal(sealed)))
