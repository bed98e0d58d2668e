"""Forecasts that nobody has made yet: claimed, computed in one batch, and written down.

An entity is computed by one worker at a time. What a worker finds out after its lease has ended,
or was given to another, is thrown away.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.errors import OperatorError, StoreError
from fleetcast.forecast.families import DEMAND, MINUTE_NS
from fleetcast.forecast.features import NO_TELEMETRY, features
from fleetcast.forecast.model import PREDICTION_UNAVAILABLE
from fleetcast.forecast.rows import NO_ROWS
from fleetcast.forecast.serving.inputs import rows_before, tags_of
from fleetcast.forecast.serving.records import (
    Assignment,
    Lease,
    Pending,
    Place,
    Value,
    assign,
    end_lease,
    take_lease,
)
from fleetcast.forecast.serving.releases import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.config.sections import Forecast as ForecastSettings
    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.releases import Release, Releases, Rollout
    from fleetcast.forecast.serving.store import PredictionStore, Records

NS_PER_SECOND = 1_000_000_000
TRUTH_MINUTES = 20
"""How long after its target a forecast is scored: telemetry comes late."""

_COOLDOWN = "an earlier computation failed; it is tried again later"
_OVER_BUDGET = "the request asks for more new forecasts than one may have computed"
_IN_PROGRESS = "another request is computing it"
_FAILED = "the computation failed"
_LOST = "the computation took too long"
_MESSAGES = {
    NO_TELEMETRY: "no telemetry in the model's input window",
    PREDICTION_UNAVAILABLE: _FAILED,
}
_TOO_LITTLE = "too little telemetry in the model's input window"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EntityError:
    """Why an entity has no fresh forecast."""

    code: str
    message: str


@dataclass(frozen=True)
class _Claim:
    place: Place
    assignment: Assignment
    lease: Lease


@dataclass(frozen=True)
class _Answer:
    """One model's word on one entity: `quantiles` by horizon."""

    issued_ns: int
    role: Role
    release: Release
    quantiles: list[list[float]]


@dataclass
class Filled:
    """What came of it, by entity."""

    values: dict[str, Value] = field(default_factory=dict)
    errors: dict[str, EntityError] = field(default_factory=dict)

    def unavailable(self, entity_id: str, message: str) -> None:
        """Notes a failure that passes."""
        self.errors[entity_id] = EntityError(PREDICTION_UNAVAILABLE, message)


class Filling:
    """One batch of one family, for one tenant."""

    def __init__(
        self,
        store: PredictionStore,
        releases: Releases,
        settings: ForecastSettings,
        plane: Plane,
        family: Family,
    ) -> None:
        self._store = store
        self._releases = releases
        self._settings = settings
        self._plane = plane
        self._family = family
        self._filled = Filled()

    def fill(self, places: Sequence[Place], rollout: Rollout, now_ns: int) -> Filled:
        """Makes what can be made now. Raises `PredictionStoreUnavailable`."""
        with self._store.write() as records:
            claims = self._claims(records, places, rollout, now_ns)
        if not claims:
            return self._filled
        try:
            made, pending = self._computed(claims, rollout, now_ns)
        except (StoreError, OperatorError, OSError, ValueError, ArithmeticError):
            logger.exception("forecasts could not be computed")
            self._cool_down(claims, now_ns)
        else:
            self._keep(claims, made, pending)
        return self._filled

    def _claims(
        self, records: Records, places: Sequence[Place], rollout: Rollout, now_ns: int
    ) -> list[_Claim]:
        claims: list[_Claim] = []
        for place in places:
            if len(claims) >= self._settings.fill_budget:
                self._filled.unavailable(place.entity_id, _OVER_BUDGET)
            elif _until(records.get("cooldowns", place.key)) > now_ns:
                self._filled.unavailable(place.entity_id, _COOLDOWN)
            elif (lease := take_lease(records, place, now_ns)) is None:
                self._filled.unavailable(place.entity_id, _IN_PROGRESS)
            else:
                claims.append(_Claim(place, assign(records, place, rollout), lease))
        return claims

    def _computed(
        self, claims: Sequence[_Claim], rollout: Rollout, now_ns: int
    ) -> tuple[dict[str, Value], list[tuple[Place, Pending]]]:
        """Values of the entities that have one, and what is to be scored of them."""
        issued_ns = self._family.issued(now_ns)
        entity_ids = [claim.place.entity_id for claim in claims]
        rows = rows_before(self._plane, self._family, entity_ids, issued_ns)
        tags = tags_of(self._plane, self._family, entity_ids) if self._family is DEMAND else {}
        entities = [rows.get(entity_id, NO_ROWS) for entity_id in entity_ids]
        made_of = features(self._family, entities, np.array([issued_ns]))
        made: dict[str, Value] = {}
        pending: list[tuple[Place, Pending]] = []
        for role, release in rollout.roles():
            forecaster = self._releases.forecaster(self._family, release)
            mine = [
                place
                for place, claim in enumerate(claims)
                if role in {claim.assignment.role, Role.SHADOW}
            ]
            forecast = forecaster.predict(made_of.of(mine))
            for claim, quantiles, code in zip(
                [claims[place] for place in mine],
                forecast.quantiles[:, 0].tolist(),
                forecast.errors[:, 0],
                strict=True,
            ):
                entity_id = claim.place.entity_id
                if code is None:
                    answer = _Answer(issued_ns, role, release, quantiles)
                    pending += self._pending(claim.place, answer)
                    if role is not Role.SHADOW:
                        view_id = forecaster.metadata.feature_view_id
                        made[entity_id] = self._value(
                            claim, answer, view_id, tags.get(entity_id, {})
                        )
                elif role is not Role.SHADOW:
                    self._filled.errors[entity_id] = EntityError(
                        code, _MESSAGES.get(code, _TOO_LITTLE)
                    )
        return made, pending

    def _value(
        self, claim: _Claim, answer: _Answer, feature_view_id: str, tags: dict[str, str]
    ) -> Value:
        horizons = self._family.horizons_minutes
        return Value(
            predicted_at_ns=self._releases.now_ns(),
            issued_at_ns=answer.issued_ns,
            quantiles={
                str(horizon): sorted(row)  # I12
                for horizon, row in zip(horizons, answer.quantiles, strict=True)
            },
            tags=tags,
            model_version=answer.release.model_version,
            feature_view_id=feature_view_id,
            release_id=answer.release.release_id,
            role=claim.assignment.role,
            assignment_id=claim.assignment.assignment_id,
            lease_id=claim.lease.lease_id,
        )

    def _pending(self, place: Place, answer: _Answer) -> list[tuple[Place, Pending]]:
        return [
            (
                place,
                Pending(
                    entity_id=place.entity_id,
                    issued_at_ns=answer.issued_ns,
                    horizon_minutes=horizon,
                    quantiles=sorted(row),
                    model_version=answer.release.model_version,
                    role=answer.role,
                ),
            )
            for horizon, row in zip(self._family.horizons_minutes, answer.quantiles, strict=True)
        ]

    def _keep(
        self,
        claims: Sequence[_Claim],
        made: Mapping[str, Value],
        pending: Sequence[tuple[Place, Pending]],
    ) -> None:
        """Writes down what is still ours to write."""
        sealed = {entity_id: value.seal(self._plane) for entity_id, value in made.items()}
        open_scores = [(due_key(place, each), each.seal(self._plane)) for place, each in pending]
        now_ns = self._releases.now_ns()
        with self._store.write() as records:
            for claim in claims:
                ours = end_lease(records, claim.place, claim.lease, now_ns)
                entity_id = claim.place.entity_id
                if entity_id in made and ours:
                    records.put("values", claim.place.key, sealed[entity_id])
                    self._filled.values[entity_id] = made[entity_id]
                elif entity_id in made:
                    self._filled.unavailable(entity_id, _LOST)
            for key, value in open_scores:
                records.put("pending", key, value)

    def _cool_down(self, claims: Sequence[_Claim], now_ns: int) -> None:
        until = now_ns + self._settings.cooldown_seconds * NS_PER_SECOND
        with self._store.write() as records:
            for claim in claims:
                if end_lease(records, claim.place, claim.lease, now_ns):
                    records.put("cooldowns", claim.place.key, until.to_bytes(8, "big"))
                self._filled.unavailable(claim.place.entity_id, _FAILED)


def due_key(place: Place, pending: Pending) -> bytes:
    """Sorts open scores by the instant from which their truth can be looked up."""
    due_ns = pending.issued_at_ns + (pending.horizon_minutes + TRUTH_MINUTES) * MINUTE_NS
    tail = f"/{pending.horizon_minutes}/{pending.role}".encode()
    return due_ns.to_bytes(8, "big") + place.key + tail


def _until(value: bytes | None) -> int:
    return 0 if value is None else int.from_bytes(value, "big")
