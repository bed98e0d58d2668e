"""Forecasts that nobody has made yet: claimed, computed in one batch, and written down.

An entity is computed by one worker at a time. What a worker finds out after its lease has ended,
or was given to another, is thrown away. Of entities without telemetry nothing is written down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.forecast.families import DEMAND, MINUTE_NS
from fleetcast.forecast.features import NO_TELEMETRY
from fleetcast.forecast.model import PREDICTION_UNAVAILABLE
from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.inputs import features_of, tags_of, with_telemetry
from fleetcast.forecast.serving.records import (
    TRUTH_MINUTES,
    UNSCORED,
    Assignment,
    Lease,
    Pending,
    Place,
    Value,
    end_lease,
    is_leased,
    take_lease,
)
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.running import Running
from fleetcast.metrics import sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.config.sections import Forecast as ForecastSettings
    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.failures import Failures
    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.rollouts import Rollout
    from fleetcast.forecast.serving.running import Run
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.forecast.serving.tables import Records
    from fleetcast.metrics import Counters

VALUE_BYTES_MAX = 65_536
"""A longer value is answered and not kept: the tags of a pool may be as long as a record."""

_COOLDOWN = "an earlier computation failed; it is tried again later"
_OVER_BUDGET = "the request asks for more new forecasts than one may have computed"
_IN_PROGRESS = "another request is computing it"
_FAILED = "the computation failed"
_LOST = "the computation took too long"
_NOTHING = "no telemetry in the model's input window"
_TOO_LITTLE = "too little telemetry in the model's input window"
_MESSAGES = {NO_TELEMETRY: _NOTHING, PREDICTION_UNAVAILABLE: _FAILED}


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


@dataclass
class _Made:
    """What a batch gives: values and error codes by claim, and records that only want writing."""

    values: dict[int, Value] = field(default_factory=dict)
    codes: dict[int, str] = field(default_factory=dict)
    sealed: dict[int, bytes] = field(default_factory=dict)
    pending: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass
class Filled:
    """What came of it, by entity."""

    values: dict[str, Value] = field(default_factory=dict)
    errors: dict[str, EntityError] = field(default_factory=dict)

    def unavailable(self, entity_id: str, message: str) -> None:
        """Notes a failure that passes."""
        self.errors[entity_id] = EntityError(PREDICTION_UNAVAILABLE, message)


@dataclass(frozen=True)
class Resources:
    """What the batches of a process share."""

    store: PredictionStore
    releases: Releases
    failures: Failures
    counters: Counters


class Filling:
    """One batch of one family, for one tenant."""

    def __init__(
        self, resources: Resources, settings: ForecastSettings, plane: Plane, family: Family
    ) -> None:
        self._store = resources.store
        self._clock = resources.releases.clock
        self._failures = resources.failures
        self._counters = resources.counters
        self._running = Running(resources.releases, resources.failures, family)
        self._settings = settings
        self._plane = plane
        self._family = family
        self._filled = Filled()

    def fill(self, places: Sequence[Place], rollout: Rollout) -> Filled:
        """Makes what can be made now. Raises `PredictionStoreUnavailable`."""
        issued_ns = self._family.issued(self._clock.now_ns())
        with self._store.read() as records:
            free = self._free(records, places)
        if not free:
            return self._filled
        try:
            known = self._with_telemetry(free, issued_ns)
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            self._failures.of_batch(self._family.name, error)
            self._cool_down(free)
            return self._filled
        if known:
            with self._store.write() as records:
                claims = self._claims(records, known, rollout)
            made = _Made()
            try:
                made = self._made(claims, rollout, issued_ns)
            finally:
                with self._store.write() as records:
                    self._settle(records, claims, made)
        return self._filled

    def _free(self, records: Records, places: Sequence[Place]) -> list[Place]:
        """Those that may be computed now, as many as one request may have computed."""
        free: list[Place] = []
        cooldown_ns = self._settings.cooldown_seconds * NS_PER_SECOND
        for place in places:
            failed = records.get("cooldowns", place.key)
            if len(free) >= self._settings.fill_budget:
                self._filled.unavailable(place.entity_id, _OVER_BUDGET)
            elif failed is not None and self._clock.age_ns(failed) < cooldown_ns:
                self._filled.unavailable(place.entity_id, _COOLDOWN)
            elif is_leased(records, place, self._clock):
                self._filled.unavailable(place.entity_id, _IN_PROGRESS)
            else:
                free.append(place)
        return free

    def _with_telemetry(self, places: Sequence[Place], issued_ns: int) -> list[Place]:
        """Those with anything in the model's input window; the others cost no more than this."""
        entity_ids = [place.entity_id for place in places]
        known = with_telemetry(self._plane, self._family, entity_ids, issued_ns)
        for entity_id in entity_ids:
            if entity_id not in known:
                self._filled.errors[entity_id] = EntityError(NO_TELEMETRY, _NOTHING)
        return [place for place in places if place.entity_id in known]

    def _claims(self, records: Records, places: Sequence[Place], rollout: Rollout) -> list[_Claim]:
        claims: list[_Claim] = []
        for place in places:
            if (lease := take_lease(records, place, self._clock)) is None:
                self._filled.unavailable(place.entity_id, _IN_PROGRESS)
            else:
                claims.append(_Claim(place, Assignment.of(place, rollout), lease))
        return claims

    def _made(self, claims: Sequence[_Claim], rollout: Rollout, issued_ns: int) -> _Made:
        """What the models say of the claims; nothing where not even their input can be made."""
        made = _Made()
        if not claims:
            return made
        entity_ids = [claim.place.entity_id for claim in claims]
        try:
            batch = features_of(self._plane, self._family, entity_ids, issued_ns)
            tags = tags_of(self._plane, self._family, entity_ids) if self._family is DEMAND else {}
            for run in self._running.runs(rollout, [c.assignment.role for c in claims], batch):
                made.pending += self._pending(claims, run, issued_ns)
                if run.role is not Role.SHADOW:
                    made.codes |= run.codes
                    made.values |= self._values(claims, run, issued_ns, tags)
            made.sealed = {index: value.seal(self._plane) for index, value in made.values.items()}
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            self._failures.of_batch(self._family.name, error)
            return _Made()
        return made

    def _values(
        self,
        claims: Sequence[_Claim],
        run: Run,
        issued_ns: int,
        tags: Mapping[str, dict[str, str]],
    ) -> dict[int, Value]:
        predicted_at_ns = self._clock.now_ns()
        return {
            index: Value(
                predicted_at_ns=predicted_at_ns,
                issued_at_ns=issued_ns,
                quantiles={
                    str(horizon): row
                    for horizon, row in zip(self._family.horizons_minutes, rows, strict=True)
                },
                tags=tags.get(claims[index].place.entity_id, {}),
                model_version=run.release.model_version,
                feature_view_id=run.feature_view_id,
                release_id=run.release.release_id,
                role=run.role,
                assignment_id=claims[index].assignment.assignment_id,
                lease_id=claims[index].lease.lease_id,
            )
            for index, rows in run.quantiles.items()
        }

    def _pending(
        self, claims: Sequence[_Claim], run: Run, issued_ns: int
    ) -> list[tuple[bytes, bytes]]:
        """A record for each horizon of a run that answered for anyone."""
        if not run.quantiles:
            return []
        first = claims[0]
        made = []
        for column, horizon in enumerate(self._family.horizons_minutes):
            pending = Pending(
                issued_at_ns=issued_ns,
                horizon_minutes=horizon,
                model_version=run.release.model_version,
                role=run.role,
                quantiles={
                    claims[index].place.entity_id: rows[column]
                    for index, rows in run.quantiles.items()
                },
            )
            due_ns = issued_ns + (horizon + TRUTH_MINUTES) * MINUTE_NS
            key = pending.key(first.place, first.lease.fence, due_ns)
            made.append((key, pending.seal(self._plane)))
        return made

    def _settle(self, records: Records, claims: Sequence[_Claim], made: _Made) -> None:
        """Writes down what is still ours to write, and gives all leases back."""
        ours = [end_lease(records, claim.place, claim.lease, self._clock) for claim in claims]
        for index, claim in enumerate(claims):
            entity_id = claim.place.entity_id
            if index in made.codes:
                code = made.codes[index]
                message = _MESSAGES.get(code, _TOO_LITTLE)
                self._filled.errors[entity_id] = EntityError(code, message)
            elif not ours[index]:
                self._filled.unavailable(entity_id, _LOST)
            elif index in made.values:
                self._keep_value(records, claim.place, made.sealed[index])
                self._filled.values[entity_id] = made.values[index]
            else:
                self._filled.unavailable(entity_id, _FAILED)
                records.keep("cooldowns", claim.place.key, self._clock.stamped(b""))
        for key, value in made.pending:
            if not all(ours):  # what took too long was not answered, as a whole or in part
                self._count(UNSCORED, Pending.count(value), reason="lease")
            elif not records.keep("pending", key, value):
                self._count(UNSCORED, Pending.count(value), reason="room")

    def _keep_value(self, records: Records, place: Place, sealed: bytes) -> None:
        record = self._clock.stamped(sealed)
        if len(record) > VALUE_BYTES_MAX or not records.keep("values", place.key, record):
            records.delete("values", place.key)  # the one before, which is no longer the newest
            self._count("fleetcast_forecast_unkept_total", 1)

    def _cool_down(self, places: Sequence[Place]) -> None:
        """After a failure that came before any lease."""
        with self._store.write() as records:
            for place in places:
                self._filled.unavailable(place.entity_id, _FAILED)
                records.keep("cooldowns", place.key, self._clock.stamped(b""))

    def _count(self, name: str, count: int, **labels: str) -> None:
        counter = self._counters.counter(sample(name, family=self._family.name, **labels))
        self._counters.add(counter, count)
