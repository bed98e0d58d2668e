"""Records of promotions: releases, and the rollouts that give them their roles."""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass

from fleetcast.forecast.serving.tables import encode


class Role(enum.StrEnum):
    """The part that a release has in the traffic."""

    PRIMARY = "primary"
    CANARY = "canary"
    """Answers for a share of the entities."""
    SHADOW = "shadow"
    """Computed and scored, never returned."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A promotion of one artefact."""

    release_id: str
    model_version: str
    sha256: str
    promoted_at_ns: int


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """Releases by role since one change. Without a primary there are no answers."""

    rollout_id: str
    changed_at_ns: int
    primary: Release | None = None
    canary: Release | None = None
    canary_percent: int = 0
    shadow: Release | None = None
    back: str | None = None
    """The rollout that a rollback returns to."""

    def roles(self) -> list[tuple[Role, Release]]:
        """The roles that have a release."""
        pairs = (
            (Role.PRIMARY, self.primary),
            (Role.CANARY, self.canary),
            (Role.SHADOW, self.shadow),
        )
        return [(role, release) for role, release in pairs if release is not None]

    def encode(self) -> bytes:
        """Encodes the rollout as it is stored."""
        return encode(asdict(self))

    @classmethod
    def decode(cls, value: bytes) -> Rollout:
        """Decodes the bytes of `encode`."""
        document = json.loads(value)
        for role in ("primary", "canary", "shadow"):
            if document[role] is not None:
                document[role] = Release(**document[role])
        return cls(**document)


NO_ROLLOUT = Rollout(rollout_id="", changed_at_ns=0)
