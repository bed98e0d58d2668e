"""Missing forecasts: claimed, computed in one batch, and stored.

An entity is computed by one worker at a time. Results are discarded if the lease of their batch has
ended. Entities without enough telemetry get no record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import ForecastValue, OpenScores
from fleetcast.forecast.families import DEMAND, FAMILIES, MINUTE_NS
from fleetcast.forecast.features import INSUFFICIENT_TELEMETRY, NO_TELEMETRY
from fleetcast.forecast.model import PREDICTION_UNAVAILABLE
from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.inputs import features_of, tags_of
from fleetcast.forecast.serving.records import (
    TRUTH_MINUTES,
    UNSCORED,
    Assignment,
    EntityKey,
    Lease,
    end_lease,
    leased,
    scores_key,
    take_lease,
)
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.running import Running
from fleetcast.forecast.serving.series import FITS_MAX, SeriesStates, is_fitted
from fleetcast.metrics import sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.config.sections import Forecast as ForecastSettings
    from fleetcast.engine import ForecastQuestion, Plane
    from fleetcast.forecast.features import Features
    from fleetcast.forecast.serving.failures import Failures
    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.rollouts import Rollout
    from fleetcast.forecast.serving.running import ModelRun
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
_MESSAGES = {NO_TELEMETRY: _NOTHING, INSUFFICIENT_TELEMETRY: _TOO_LITTLE}


class EntityError(NamedTuple):
    """Reason that an entity has no new forecast."""

    code: str
    message: str


@dataclass(frozen=True)
class _Batch:
    """Entities that this worker has the right to compute, and the decisions about them."""

    lease: Lease
    entities: list[EntityKey]
    assignments: list[Assignment]
    features: Features


@dataclass
class _Computed:
    """Result of a batch: values by entity, and records to be written."""

    values: dict[int, ForecastValue] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    """Entities for which the model has no answer."""
    sealed: dict[int, bytes] = field(default_factory=dict)
    states: dict[bytes, bytes] = field(default_factory=dict)
    pending: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass
class Filled:
    """Values and errors by entity."""

    values: dict[str, ForecastValue] = field(default_factory=dict)
    errors: dict[str, EntityError] = field(default_factory=dict)

    def unavailable(self, entity_id: str, message: str) -> None:
        """Notes a failure that will pass."""
        self.errors[entity_id] = EntityError(PREDICTION_UNAVAILABLE, message)


@dataclass(frozen=True)
class Resources:
    """Parts that all batches of a process use."""

    store: PredictionStore
    releases: Releases
    failures: Failures
    counters: Counters


class Filling:
    """A batch of one tenant for one question."""

    def __init__(
        self,
        resources: Resources,
        settings: ForecastSettings,
        plane: Plane,
        asked: ForecastQuestion,
    ) -> None:
        self._store = resources.store
        self._clock = resources.releases.clock
        self._failures = resources.failures
        self._counters = resources.counters
        self._releases = resources.releases
        self._settings = settings
        self._plane = plane
        self._asked = asked
        self._family = FAMILIES[asked.family]
        self._filled = Filled()

    def fill(self, entities: Sequence[EntityKey], rollout: Rollout) -> Filled:
        """Computes all forecasts that can be computed now. Raises `PredictionStoreUnavailable`."""
        issued_ns = self._family.issued(self._clock.now_ns())
        with self._store.read() as records:
            free = self._free(records, entities)
            free = self._fitted(records, free, rollout, issued_ns)
        if not free:
            return self._filled
        try:
            entity_ids = [entity.entity_id for entity in free]
            features = features_of(self._plane, self._family, entity_ids, issued_ns)
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            self._failures.of_batch(self._family.name, error)
            self._cool_down(free)
            return self._filled
        batch = self._claimed(free, features, rollout)
        if batch is not None:
            computed = _Computed()
            try:
                computed = self._compute(batch, rollout, issued_ns)
            finally:
                with self._store.write() as records:
                    self._settle(records, batch, computed)
        return self._filled

    def _free(self, records: Records, entities: Sequence[EntityKey]) -> list[EntityKey]:
        """The entities that may be computed now, up to the budget of one request."""
        free: list[EntityKey] = []
        cooldown_ns = self._settings.cooldown_seconds * NS_PER_SECOND
        records.load("cooldowns", [entity.key for entity in entities])
        held = leased(records, entities[0].group, self._clock)
        for entity in entities:
            failed = records.get("cooldowns", entity.key)
            if len(free) >= self._settings.fill_budget:
                self._filled.unavailable(entity.entity_id, _OVER_BUDGET)
            elif failed is not None and self._clock.age_ns(failed) < cooldown_ns:
                self._filled.unavailable(entity.entity_id, _COOLDOWN)
            elif entity.digest in held:
                self._filled.unavailable(entity.entity_id, _IN_PROGRESS)
            else:
                free.append(entity)
        return free

    def _fitted(
        self, records: Records, entities: Sequence[EntityKey], rollout: Rollout, issued_ns: int
    ) -> list[EntityKey]:
        """Entities with kept states, and as many others as one request may have fitted."""
        if self._family is not DEMAND or rollout.primary is None or len(entities) <= FITS_MAX:
            return list(entities)
        kept, fits = [], 0
        for entity in entities:
            fits += not is_fitted(records, entity, rollout.primary, issued_ns)
            if fits <= FITS_MAX:
                kept.append(entity)
            else:
                self._filled.unavailable(entity.entity_id, _OVER_BUDGET)
        return kept

    def _claimed(
        self, entities: Sequence[EntityKey], features: Features, rollout: Rollout
    ) -> _Batch | None:
        """The entities with enough telemetry that no other worker computes, or has computed since.

        Returns `None` without any.
        """
        enough: list[int] = []
        for index, code in enumerate(features.errors[:, 0]):
            if code is None:
                enough.append(index)
            else:
                error = EntityError(code, _MESSAGES[code])
                self._filled.errors[entities[index].entity_id] = error
        if not enough:
            return None
        with self._store.write() as records:
            held = leased(records, entities[0].group, self._clock)
            fresh_ns = self._settings.fresh_seconds * NS_PER_SECOND
            account_id = entities[0].account_id
            recent = records.recent(self._plane, account_id, self._asked, fresh_ns, self._clock)
            kept = recent.values
            free = []
            for index in enough:
                entity = entities[index]
                if entity.digest in held:
                    self._filled.unavailable(entity.entity_id, _IN_PROGRESS)
                elif (value := kept.get(entity.entity_id)) is not None:
                    self._filled.values[entity.entity_id] = value
                else:
                    free.append(index)
            mine = [entities[index] for index in free]
            lease = take_lease(records, mine, self._clock) if mine else None
        if lease is None:
            return None
        decisions = [Assignment.of(entity, rollout) for entity in mine]
        return _Batch(lease, mine, decisions, features.of(free))

    def _compute(self, batch: _Batch, rollout: Rollout, issued_ns: int) -> _Computed:
        """Answers of the models to a batch; empty if other input cannot be read."""
        computed = _Computed()
        entity_ids = [entity.entity_id for entity in batch.entities]
        try:
            tags = tags_of(self._plane, self._family, entity_ids) if self._family is DEMAND else {}
            series = SeriesStates(self._store, self._plane, self._family, batch.entities, issued_ns)
            running = Running(self._releases, self._failures, self._family, series)
            roles = [each.role for each in batch.assignments]
            for run in running.runs(rollout, roles, batch.features):
                computed.pending += self._pending(batch, run, issued_ns)
                if run.role is not Role.SHADOW:
                    computed.failed |= run.failed
                    computed.values |= self._values(batch, run, issued_ns, tags)
            computed.sealed = {
                index: value.seal(self._plane) for index, value in computed.values.items()
            }
            computed.states = series.sealed
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            self._failures.of_batch(self._family.name, error)
            return _Computed()
        return computed

    def _values(
        self,
        batch: _Batch,
        run: ModelRun,
        issued_ns: int,
        tags: Mapping[str, dict[str, str]],
    ) -> dict[int, ForecastValue]:
        predicted_at_ns = self._clock.now_ns()
        return {
            index: ForecastValue(
                predicted_at_ns=predicted_at_ns,
                issued_at_ns=issued_ns,
                quantiles=dict(zip(self._family.horizons_minutes, rows, strict=True)),
                tags=tags.get(batch.entities[index].entity_id, {}),
                model_version=run.release.model_version,
                feature_view_id=run.feature_view_id,
                release_id=run.release.release_id,
                role=run.role,
                assignment_id=batch.assignments[index].assignment_id,
                lease_id=batch.lease.lease_id,
            )
            for index, rows in run.quantiles.items()
        }

    def _pending(self, batch: _Batch, run: ModelRun, issued_ns: int) -> list[tuple[bytes, bytes]]:
        """A record for each horizon of a run that answered for at least one entity."""
        if not run.quantiles:
            return []
        horizons = self._family.horizons_minutes
        sealed = OpenScores.seal(
            self._plane,
            issued_at_ns=issued_ns,
            horizons_minutes=horizons,
            model_version=run.release.model_version,
            role=run.role,
            quantiles={
                batch.entities[index].entity_id: rows for index, rows in run.quantiles.items()
            },
        )
        dues_ns = (issued_ns + (horizon + TRUTH_MINUTES) * MINUTE_NS for horizon in horizons)
        keys = (scores_key(batch.lease, run.role, due_ns) for due_ns in dues_ns)
        return list(zip(keys, sealed, strict=True))

    def _settle(self, records: Records, batch: _Batch, computed: _Computed) -> None:
        """Writes the results if the lease still holds, and gives it back."""
        records.load("values", [entity.key for entity in batch.entities])
        ours = end_lease(records, batch.lease, self._clock)
        for index, entity in enumerate(batch.entities):
            entity_id = entity.entity_id
            if index in computed.failed:
                self._filled.unavailable(entity_id, _FAILED)
            elif not ours:
                self._filled.unavailable(entity_id, _LOST)
            elif index in computed.values:
                self._keep_value(records, entity, computed.sealed[index])
                self._filled.values[entity_id] = computed.values[index]
            else:
                self._filled.unavailable(entity_id, _FAILED)
                records.keep("cooldowns", entity.key, self._clock.stamped(b""))
        for key, state in computed.states.items():  # all holders of the lease fit the same state
            if not records.keep("series", key, self._clock.stamped(state)):
                self._count("fleetcast_forecast_unkept_total", 1)
        self._keep_pending(records, computed, ours=ours)

    def _keep_pending(self, records: Records, computed: _Computed, *, ours: bool) -> None:
        for key, value in computed.pending:
            if not ours:  # a batch that took too long was not answered
                self._count(UNSCORED, OpenScores.count(value), reason="lease")
            elif not records.keep("pending", key, value):
                self._count(UNSCORED, OpenScores.count(value), reason="room")

    def _keep_value(self, records: Records, entity: EntityKey, sealed: bytes) -> None:
        record = self._clock.stamped(sealed)
        if len(record) > VALUE_BYTES_MAX or not records.keep("values", entity.key, record):
            records.delete("values", entity.key)  # the earlier value, which is no longer the newest
            self._count("fleetcast_forecast_unkept_total", 1)

    def _cool_down(self, entities: Sequence[EntityKey]) -> None:
        """Notes a failure that came before any lease."""
        with self._store.write() as records:
            for entity in entities:
                self._filled.unavailable(entity.entity_id, _FAILED)
                records.keep("cooldowns", entity.key, self._clock.stamped(b""))

    def _count(self, name: str, count: int, **labels: str) -> None:
        counter = self._counters.counter(sample(name, family=self._family.name, **labels))
        self._counters.add(counter, count)
