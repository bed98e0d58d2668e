"""Records of serving: routing decisions, rights to compute, and keys of open scores."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import RecordStamp, assignment_id, forecast_key
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.tables import due

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.engine import Plane
    from fleetcast.forecast.serving.clock import Clock
    from fleetcast.forecast.serving.rollouts import Rollout
    from fleetcast.forecast.serving.tables import Records

LEASE_NS = 30_000_000_000
"""The longest time for one batch. A worker that dies holds an entity up no longer."""
TRUTH_MINUTES = 20
"""Minutes after its target at which a forecast is scored, because telemetry comes late."""
UNSCORED = "fleetcast_forecast_unscored_total"
_DIGEST_BYTES = 16
_FENCE_BYTES = 8


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
    def group(self) -> bytes:
        """The beginning of the keys of all entities of this tenant and family."""
        return self.key[:-_DIGEST_BYTES]

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
    """The right of one worker to compute the entities of a batch for `LEASE_NS`. `fence` grows."""

    lease_id: str
    fence: int
    group: bytes

    @property
    def key(self) -> bytes:
        """The key of its record, whose content is the digests of the entities."""
        return self.group + self.fence.to_bytes(_FENCE_BYTES, "big")


def leased(records: Records, group: bytes, clock: Clock) -> set[bytes]:
    """Digests of the entities of a group that workers have the right to compute."""
    held: set[bytes] = set()
    for _, record in records.under("leases", group):
        if clock.age_ns(record) < LEASE_NS:
            digests = RecordStamp.content(record)
            held.update(
                digests[first : first + _DIGEST_BYTES]
                for first in range(0, len(digests), _DIGEST_BYTES)
            )
    return held


def take_lease(records: Records, entities: Sequence[EntityKey], clock: Clock) -> Lease:
    """Takes the right to compute entities of one group that no other worker has."""
    lease = Lease(lease_id=str(uuid.uuid4()), fence=records.next_fence(), group=entities[0].group)
    digests = b"".join(entity.digest for entity in entities)
    records.put("leases", lease.key, clock.stamped(digests))
    return lease


def end_lease(records: Records, lease: Lease, clock: Clock) -> bool:
    """Gives the right back; returns true if the lease still held, so that the answers count."""
    record = records.get("leases", lease.key)
    records.delete("leases", lease.key)
    return record is not None and clock.age_ns(record) < LEASE_NS


def scores_key(lease: Lease, role: Role, due_ns: int) -> bytes:
    """The key of a batch's open scores, which sorts by the instant from which they are scored."""
    return due(due_ns) + lease.key + role.encode()
