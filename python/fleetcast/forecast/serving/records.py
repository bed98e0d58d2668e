"""Records of serving: routing decisions, rights to compute, values, open scores."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import RecordStamp, assignment_id, forecast_key
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.tables import due, encode

if TYPE_CHECKING:
    from fleetcast.engine import Plane
    from fleetcast.forecast.serving.clock import Clock
    from fleetcast.forecast.serving.rollouts import Rollout
    from fleetcast.forecast.serving.tables import Records

LEASE_NS = 30_000_000_000
"""The longest time for one batch. A worker that dies holds an entity up no longer."""
TRUTH_MINUTES = 20
"""Minutes after its target at which a forecast is scored, because telemetry comes late."""
UNSCORED = "fleetcast_forecast_unscored_total"
_COUNT_BYTES = 4


class EntityKey(NamedTuple):
    """An entity of one tenant and family, and the key of its records: a keyed hash."""

    account_id: str
    family: str
    entity_id: str
    digest: bytes
    key: bytes
    """The key in every table."""

    @classmethod
    def of(cls, plane: Plane, account_id: str, family: str, entity_id: str) -> EntityKey:
        """Makes the key. Raises `StoreError`."""
        digest, key = forecast_key(plane, account_id, family, entity_id)
        return cls(account_id, family, entity_id, digest, key)

    @property
    def percentile(self) -> float:
        """A stable number from 0 to 100 that differs between entities.

        Example: with a canary of 10 percent, the canary answers for an entity at 7.3.
        """
        return int.from_bytes(self.digest[:8], "big") / 2**64 * 100


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The routing decision of an entity. It follows from the rollout, so it is not stored."""

    assignment_id: str
    role: Role

    @classmethod
    def of(cls, entity: EntityKey, rollout: Rollout) -> Assignment:
        """The decision of a rollout that has a primary."""
        canary = rollout.canary is not None and entity.percentile < rollout.canary_percent
        return cls(
            assignment_id=assignment_id(rollout.rollout_id, entity.digest),
            role=Role.CANARY if canary else Role.PRIMARY,
        )


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one worker to compute one entity for `LEASE_NS`. `fence` grows."""

    lease_id: str
    fence: int

    @property
    def content(self) -> bytes:
        """The content of its record: JSON."""
        return f'{{"lease_id":"{self.lease_id}","fence":{self.fence}}}'.encode()


def is_leased(records: Records, entity: EntityKey, clock: Clock) -> bool:
    """Returns true while a worker has the right to compute an entity."""
    record = records.get("leases", entity.key)
    return record is not None and clock.age_ns(record) < LEASE_NS


def take_lease(records: Records, entity: EntityKey, clock: Clock) -> Lease | None:
    """Takes the right to compute; returns `None` while another worker has it."""
    if is_leased(records, entity, clock):
        return None
    lease = Lease(lease_id=str(uuid.uuid4()), fence=records.next_fence())
    records.put("leases", entity.key, clock.stamped(lease.content))
    return lease


def end_lease(records: Records, entity: EntityKey, lease: Lease, clock: Clock) -> bool:
    """Gives the right back; returns true if the lease still held, so that the answer counts."""
    record = records.get("leases", entity.key)
    if record is None or RecordStamp.content(record) != lease.content:
        return False
    records.delete("leases", entity.key)
    return clock.age_ns(record) < LEASE_NS


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
        """The key, which sorts open scores by the instant from which they can be scored.

        `entity` is any entity of the batch, `fence` a number that no other batch has.
        """
        owner = f"{entity.account_id}/{entity.family}/".encode()
        return due(due_ns) + owner + fence.to_bytes(8, "big") + self.role.encode()

    def seal(self, plane: Plane) -> bytes:
        """Seals the forecasts under the tenant's key, after their count. Raises `StoreError`."""
        count = len(self.quantiles).to_bytes(_COUNT_BYTES, "big")
        return count + plane.seal(encode(vars(self)))

    @classmethod
    def unseal(cls, plane: Plane, value: bytes) -> Pending | None:
        """Opens a sealed value; `None` if its data key was dropped. Raises `StoreError`."""
        plain = plane.unseal(value[_COUNT_BYTES:])
        return None if plain is None else cls(**json.loads(plain))

    @staticmethod
    def count(value: bytes) -> int:
        """Number of forecasts in a stored value."""
        return int.from_bytes(value[:_COUNT_BYTES], "big")
