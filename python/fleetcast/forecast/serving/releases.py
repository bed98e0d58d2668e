"""Which model answers for a family: promotions, canaries, shadows, and the way back.

A *model version* names an artefact, a file known by its hash. A *release* is one promotion of one
artefact; promoting the same artefact again is another release. A *rollout* says which release has
which role from one change to the next; going back makes a new rollout with the release of old.
"""

from __future__ import annotations

import enum
import hashlib
import json
import os
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError
from fleetcast.forecast.families import FAMILIES
from fleetcast.forecast.features import view
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.onnx import Model, shipped
from fleetcast.forecast.serving.store import encode, rollout_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.store import PredictionStore, Records

_MODELS_MAX = 16


class Role(enum.StrEnum):
    """What a release does with the traffic."""

    PRIMARY = "primary"
    CANARY = "canary"
    """Answers for a share of the entities."""
    SHADOW = "shadow"
    """Computed and scored, never returned."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """One promotion of one artefact."""

    release_id: str
    model_version: str
    sha256: str
    promoted_at_ns: int


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """Who has which role since one change. Without a primary nothing is answered (I2)."""

    rollout_id: str
    changed_at_ns: int
    primary: Release | None = None
    canary: Release | None = None
    canary_percent: int = 0
    shadow: Release | None = None
    back: str | None = None
    """The rollout that a rollback returns to."""

    def roles(self) -> list[tuple[Role, Release]]:
        """Those that are taken."""
        pairs = (
            (Role.PRIMARY, self.primary),
            (Role.CANARY, self.canary),
            (Role.SHADOW, self.shadow),
        )
        return [(role, release) for role, release in pairs if release is not None]


NO_ROLLOUT = Rollout(rollout_id="", changed_at_ns=0)


class Releases:
    """The releases of one data directory."""

    def __init__(self, store: PredictionStore, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._store = store
        self._clock_ns = clock_ns
        self._forecaster = lru_cache(_MODELS_MAX)(self._loaded)

    def now_ns(self) -> int:
        """The clock: nanoseconds since 1970 in UTC."""
        return self._clock_ns()

    def current(self, records: Records, family: str) -> Rollout:
        """The rollout in force, as a transaction sees it."""
        value = records.get("rollouts", rollout_key(family))
        return NO_ROLLOUT if value is None else _decoded(value)

    def every(self, family: str) -> list[Rollout]:
        """All rollouts, the oldest first. Raises `PredictionStoreUnavailable`."""
        with self._store.read() as records:
            found = [_decoded(v) for _, v in records.under("rollouts", f"{family}/".encode())]
        return sorted(found, key=lambda rollout: rollout.changed_at_ns)

    def promote(
        self,
        family: str,
        path: Path | None = None,
        role: Role = Role.PRIMARY,
        canary_percent: int = 10,
    ) -> Rollout:
        """Releases an artefact, that of this version where `path` is `None`, in a role.

        A new primary ends canary and shadow. Raises `OperatorError` for a file that is no model of
        the family, `OSError`, `PredictionStoreUnavailable`.
        """
        content = shipped(FAMILIES[family]) if path is None else path.read_bytes()
        model = _model(content, FAMILIES[family])
        self._keep(content)
        with self._store.write() as records:
            before = self.current(records, family)
            now_ns = self._clock_ns()
            release = Release(
                release_id=str(uuid.uuid4()),
                model_version=model.metadata.model_version,
                sha256=model.metadata.sha256,
                promoted_at_ns=now_ns,
            )
            after = replace(
                before,
                rollout_id=str(uuid.uuid4()),
                changed_at_ns=now_ns,
                back=before.rollout_id or None,
            )
            if role is Role.PRIMARY:
                after = replace(after, primary=release, canary=None, canary_percent=0, shadow=None)
            elif after.primary is None:
                message = f"{family} has no primary release to put a {role} beside"
                raise OperatorError(message)
            elif role is Role.CANARY:
                after = replace(after, canary=release, canary_percent=canary_percent)
            else:
                after = replace(after, shadow=release)
            _put(records, family, after)
        return after

    def rollback(self, family: str) -> Rollout:
        """Undoes the last change. Raises `OperatorError`, `PredictionStoreUnavailable`."""
        with self._store.write() as records:
            now = self.current(records, family)
            if now.primary is None:
                message = f"{family} has no release to go back from"
                raise OperatorError(message)
            earlier = NO_ROLLOUT
            if now.back is not None:
                value = records.get("rollouts", rollout_key(family, now.back))
                earlier = NO_ROLLOUT if value is None else _decoded(value)
            rollout_id = str(uuid.uuid4())
            after = replace(earlier, rollout_id=rollout_id, changed_at_ns=self._clock_ns())
            _put(records, family, after)
        return after

    def forecaster(self, family: Family, release: Release) -> Forecaster:
        """The model of a release, loaded once a process. Raises `OperatorError`, `OSError`."""
        return self._forecaster(family, release.sha256)

    def _loaded(self, family: Family, sha256: str) -> Forecaster:
        content = self._path(sha256).read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            message = f"{self._path(sha256)} is not the file that was promoted"
            raise OperatorError(message)
        return Forecaster(family, _model(content, family))

    def _keep(self, content: bytes) -> None:
        """Copies an artefact in, whole or not at all: the release stays what it was."""
        path = self._path(hashlib.sha256(content).hexdigest())
        if path.exists() and path.read_bytes() == content:  # promoting again mends a damaged file
            return
        with tempfile.NamedTemporaryFile(dir=self._store.models, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(file.name, path)  # noqa: PTH104 - the name that tempfile gave

    def _path(self, sha256: str) -> Path:
        return self._store.models / f"{sha256}.onnx"


def _model(content: bytes, family: Family) -> Model:
    return Model(content, family, view(family))


def _put(records: Records, family: str, rollout: Rollout) -> None:
    value = encode(asdict(rollout))
    records.put("rollouts", rollout_key(family), value)
    records.put("rollouts", rollout_key(family, rollout.rollout_id), value)


def _decoded(value: bytes) -> Rollout:
    document = json.loads(value)
    for role in ("primary", "canary", "shadow"):
        if document[role] is not None:
            document[role] = Release(**document[role])
    return Rollout(**document)
