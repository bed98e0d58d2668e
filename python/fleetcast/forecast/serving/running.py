"""The models of a rollout, run on one batch. No model can prevent another's answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.serving.rollouts import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features import Features
    from fleetcast.forecast.serving.failures import Failures
    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.rollouts import Release, Rollout
    from fleetcast.forecast.serving.series import SeriesStates


@dataclass(frozen=True)
class ModelRun:
    """The answers of one model for entities, by their index in the batch."""

    role: Role
    release: Release
    feature_view_id: str
    quantiles: dict[int, list[list[float]]]
    """Quantiles of each horizon."""
    failed: set[int]
    """Entities for which the model has no answer."""


class Running:
    """Runs models of one family on one batch."""

    def __init__(
        self, releases: Releases, failures: Failures, family: Family, series: SeriesStates
    ) -> None:
        self._releases = releases
        self._failures = failures
        self._family = family
        self._series = series

    def runs(self, rollout: Rollout, roles: Sequence[Role], batch: Features) -> list[ModelRun]:
        """All runs that did not fail; `roles` says which role answers for each entity.

        The primary answers if the canary has no forecast. Entities whose model fails are only in
        the shadow's run.
        """
        everyone = range(len(roles))
        runs: list[ModelRun] = []
        if rollout.canary is not None:
            mine = [index for index in everyone if roles[index] is Role.CANARY]
            runs += self._run(Role.CANARY, rollout.canary, mine, batch)
        answered = {index for run in runs for index in run.quantiles}
        if rollout.primary is not None:
            mine = [index for index in everyone if index not in answered]
            runs = [replace(run, failed=set()) for run in runs]
            runs += self._run(Role.PRIMARY, rollout.primary, mine, batch)
        if rollout.shadow is not None:
            runs += self._run(Role.SHADOW, rollout.shadow, everyone, batch)
        return runs

    def _run(
        self, role: Role, release: Release, mine: Sequence[int], batch: Features
    ) -> list[ModelRun]:
        """Runs one model; returns no run if it failed or has no entities."""
        if not mine:
            return []
        try:
            forecaster = self._releases.forecaster(self._family, release)
            features = batch.of(mine)
            states = self._series.of(forecaster, mine)
            forecast = forecaster.predict(features, states)
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            self._failures.of_release(self._family.name, role, release, error)
            return []
        levels = np.sort(forecast.quantiles[:, 0])  # never crossing
        answered = dict(zip(mine, levels.tolist(), strict=True))
        failed = {mine[at] for at, code in enumerate(forecast.errors[:, 0]) if code is not None}
        quantiles = {index: answered[index] for index in mine if index not in failed}
        view_id = forecaster.metadata.feature_view_id
        return [ModelRun(role, release, view_id, quantiles, failed)]
