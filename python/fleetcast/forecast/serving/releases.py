"""Choice of the model that answers for a family: promotions, canaries, shadows, rollbacks.

A *model version* names an artefact, a file known by its hash. A *release* is one promotion of one
artefact; promoting the same artefact again is another release. A *rollout* says which release has
which role from one change to the next. A rollback makes a new rollout with the old release.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError, reason
from fleetcast.forecast.families import FAMILIES
from fleetcast.forecast.features import view
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.onnx import Model, shipped
from fleetcast.forecast.serving.rollouts import NO_ROLLOUT, Release, Role, Rollout
from fleetcast.forecast.serving.tables import rollout_key

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.clock import Clock
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.forecast.serving.tables import Records

_MODELS_MAX = 16
_RETRY_NS = 10_000_000_000
"""Delay before a release that did not load is tried again, because reading a file takes time."""


class Releases:
    """The releases of one data directory."""

    def __init__(self, store: PredictionStore, clock: Clock | None = None) -> None:
        self._store = store
        self.clock = store.clock if clock is None else clock
        self._forecaster = lru_cache(_MODELS_MAX)(self._loaded)
        self._failed: dict[str, tuple[int, str]] = {}
        """By release id: the age at which the load failed (`Clock.elapsed_ns`), and the reason."""

    def current(self, records: Records, family: str) -> Rollout:
        """The rollout in force, as a transaction sees it."""
        value = records.get("rollouts", rollout_key(family))
        return NO_ROLLOUT if value is None else Rollout.decode(value)

    def all(self, family: str) -> list[Rollout]:
        """All rollouts, from the oldest. Raises `PredictionStoreUnavailable`."""
        with self._store.read() as records:
            found = [Rollout.decode(v) for _, v in records.under("rollouts", f"{family}/".encode())]
        return sorted(found, key=lambda rollout: rollout.changed_at_ns)

    def promote(
        self,
        family: str,
        path: Path | None = None,
        role: Role = Role.PRIMARY,
        canary_percent: int = 10,
    ) -> Rollout:
        """Releases an artefact in a role; `path` of `None` means the model of this version.

        A new primary ends canary and shadow. A model of raw values cannot be primary, because its
        cost is unknown. Raises `OperatorError` for a file that is no model of the family,
        `OSError`, `PredictionStoreUnavailable`.
        """
        content = shipped(FAMILIES[family]) if path is None else path.read_bytes()
        model = _model(content, FAMILIES[family])
        if role is Role.PRIMARY and model.metadata.context is not None:
            message = f"{model.metadata.model_version} is a model of raw values: canary or shadow"
            raise OperatorError(message)
        self._store.models.keep(content)
        with self._store.write() as records:
            before = self.current(records, family)
            now_ns = self.clock.now_ns()
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
                earlier = NO_ROLLOUT if value is None else Rollout.decode(value)
            rollout_id = str(uuid.uuid4())
            after = replace(earlier, rollout_id=rollout_id, changed_at_ns=self.clock.now_ns())
            _put(records, family, after)
        return after

    def forecaster(self, family: Family, release: Release) -> Forecaster:
        """Returns the model of a release, loaded once a process. After a failure it is tried again.

        Raises `OperatorError`, `OSError`.
        """
        failure = self._failed.get(release.release_id)
        if failure is not None and self.clock.elapsed_ns() - failure[0] < _RETRY_NS:
            raise OperatorError(failure[1])
        try:
            forecaster = self._forecaster(family, release.sha256)
        except (OperatorError, OSError) as error:
            if len(self._failed) >= _MODELS_MAX:
                self._failed.clear()
            self._failed[release.release_id] = self.clock.elapsed_ns(), reason(error)
            raise
        self._failed.pop(release.release_id, None)
        return forecaster

    def _loaded(self, family: Family, sha256: str) -> Forecaster:
        return Forecaster(family, _model(self._store.models.read(sha256), family))


def _model(content: bytes, family: Family) -> Model:
    return Model(content, family, view(family))


def _put(records: Records, family: str, rollout: Rollout) -> None:
    value = rollout.encode()
    records.put("rollouts", rollout_key(family), value)
    records.put("rollouts", rollout_key(family, rollout.rollout_id), value)
