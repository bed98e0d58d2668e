"""Records of serving: routing decisions, rights to compute, values, open scores."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.forecast.serving.clock import content
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.tables import due, encode

if TYPE_CHECKING:
    from fleetcast.engine import Plane
    from fleetcast.forecast.serving.clock import Clock
    from fleetcast.forecast.serving.rollouts import Rollout
    from fleetcast.forecast.serving.tables import Records

LEASE_NS = 30_000_000_000
"""The longest that one batch may take; a worker that dies holds an entity up no longer."""
TRUTH_MINUTES = 20
"""How long after its target a forecast is scored: telemetry comes late."""
UNSCORED = "fleetcast_forecast_unscored_total"
_COUNT_BYTES = 4


class EntityKey(NamedTuple):
    """One entity of one tenant and family, and the key of its records: a keyed hash."""

    account_id: str
    family: str
    entity_id: str
    digest: bytes
    key: bytes
    """In every table."""

    @classmethod
    def of(cls, plane: Plane, account_id: str, family: str, entity_id: str) -> EntityKey:
        """Raises `StoreError`."""
        digest = plane.name_hash(f"{family}/{entity_id}".encode())
        return cls(
            account_id=account_id,
            family=family,
            entity_id=entity_id,
            digest=digest,
            key=f"{account_id}/{family}/".encode() + digest,
        )

    @property
    def percentile(self) -> float:
        """A stable number from 0 to 100, another for each entity."""
        return int.from_bytes(self.digest[:8], "big") / 2**64 * 100


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The routing decision of an entity: it follows from the rollout, so nobody has to keep it."""

    assignment_id: str
    role: Role

    @classmethod
    def of(cls, entity: EntityKey, rollout: Rollout) -> Assignment:
        """The decision of a rollout that has a primary."""
        canary = rollout.canary is not None and entity.percentile < rollout.canary_percent
        return cls(
            assignment_id=str(uuid.uuid5(uuid.UUID(rollout.rollout_id), entity.digest.hex())),
            role=Role.CANARY if canary else Role.PRIMARY,
        )


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one worker to compute one entity for `LEASE_NS`. `fence` grows."""

    lease_id: str
    fence: int


def is_leased(records: Records, entity: EntityKey, clock: Clock) -> bool:
    """True while somebody has the right to compute an entity."""
    record = records.get("leases", entity.key)
    return record is not None and clock.age_ns(record) < LEASE_NS


def take_lease(records: Records, entity: EntityKey, clock: Clock) -> Lease | None:
    """The right to compute; `None` while somebody else has it."""
    if is_leased(records, entity, clock):
        return None
    lease = Lease(lease_id=str(uuid.uuid4()), fence=records.next_fence())
    records.put("leases", entity.key, clock.stamped(encode(vars(lease))))
    return lease


def end_lease(records: Records, entity: EntityKey, lease: Lease, clock: Clock) -> bool:
    """Gives the right back; true where it still was one, so that the answer counts."""
    record = records.get("leases", entity.key)
    if record is None or Lease(**json.loads(content(record))).fence != lease.fence:
        return False
    records.delete("leases", entity.key)
    return clock.age_ns(record) < LEASE_NS


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

    def is_of(self, entity: EntityKey, rollout: Rollout) -> bool:
        """True for a value of this rollout, which has a primary then."""
        if rollout.primary is None:
            return False
        return self.assignment_id == Assignment.of(entity, rollout).assignment_id

    def seal(self, plane: Plane) -> bytes:
        """Under the tenant's key. Raises `StoreError`."""
        return plane.seal(encode(vars(self)))

    @classmethod
    def unseal(cls, plane: Plane, sealed: bytes) -> Value:
        """Raises `StoreError`, `StoreDamaged` for the bytes of somebody else."""
        return cls(**json.loads(plane.unseal(sealed)))


@dataclass(frozen=True, kw_only=True)
class Pending:
    """Forecasts of one batch whose truth is yet to come: one model's, at one horizon."""

    issued_at_ns: int
    horizon_minutes: int
    model_version: str
    role: str
    quantiles: dict[str, list[float]]
    """By entity."""

    def key(self, entity: EntityKey, fence: int, due_ns: int) -> bytes:
        """Sorts open scores by the instant from which they can be scored.

        `entity` is of any entity of the batch, `fence` a number that no other batch has.
        """
        owner = f"{entity.account_id}/{entity.family}/".encode()
        return due(due_ns) + owner + fence.to_bytes(8, "big") + self.role.encode()

    def seal(self, plane: Plane) -> bytes:
        """Their number in the open, and the rest under the tenant's key. Raises `StoreError`."""
        count = len(self.quantiles).to_bytes(_COUNT_BYTES, "big")
        return count + plane.seal(encode(vars(self)))

    @classmethod
    def unseal(cls, plane: Plane, value: bytes) -> Pending:
        """Raises `StoreError`."""
        return cls(**json.loads(plane.unseal(value[_COUNT_BYTES:])))

    @staticmethod
    def count(value: bytes) -> int:
        """Number of forecasts in a stored value."""
        return int.from_bytes(value[:_COUNT_BYTES], "big")
