"""Missing forecasts: claimed, computed in one batch, and stored.

An entity is computed by one worker at a time. Results are discarded if the worker's lease has
ended, or another worker has the lease. Entities without telemetry get no record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.engine import ForecastValue
from fleetcast.forecast.families import DEMAND, MINUTE_NS
from fleetcast.forecast.features import NO_TELEMETRY
from fleetcast.forecast.model import PREDICTION_UNAVAILABLE
from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.inputs import features_of, tags_of, with_telemetry
from fleetcast.forecast.serving.records import (
    TRUTH_MINUTES,
    UNSCORED,
    Assignment,
    EntityKey,
    Lease,
    Pending,
    end_lease,
    is_leased,
    take_lease,
)
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.running import Running
from fleetcast.forecast.serving.series import FITS_MAX, SeriesStates, is_fitted
from fleetcast.metrics import sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.config.sections import Forecast as ForecastSettings
    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
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
_MESSAGES = {NO_TELEMETRY: _NOTHING, PREDICTION_UNAVAILABLE: _FAILED}


class EntityError(NamedTuple):
    """Reason that an entity has no new forecast."""

    code: str
    message: str


@dataclass(frozen=True)
class _Task:
    entity: EntityKey
    assignment: Assignment
    lease: Lease


@dataclass
class _Computed:
    """Result of a batch: values and error codes by task, and records to be written."""

    values: dict[int, ForecastValue] = field(default_factory=dict)
    codes: dict[int, str] = field(default_factory=dict)
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
    """A batch of one family, for one tenant."""

    def __init__(
        self, resources: Resources, settings: ForecastSettings, plane: Plane, family: Family
    ) -> None:
        self._store = resources.store
        self._clock = resources.releases.clock
        self._failures = resources.failures
        self._counters = resources.counters
        self._releases = resources.releases
        self._settings = settings
        self._plane = plane
        self._family = family
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
            known = self._with_telemetry(free, issued_ns)
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            self._failures.of_batch(self._family.name, error)
            self._cool_down(free)
            return self._filled
        if known:
            with self._store.write() as records:
                tasks = self._tasks(records, known, rollout)
            computed = _Computed()
            try:
                computed = self._compute(tasks, rollout, issued_ns)
            finally:
                with self._store.write() as records:
                    self._settle(records, tasks, computed)
        return self._filled

    def _free(self, records: Records, entities: Sequence[EntityKey]) -> list[EntityKey]:
        """The entities that may be computed now, up to the budget of one request."""
        free: list[EntityKey] = []
        cooldown_ns = self._settings.cooldown_seconds * NS_PER_SECOND
        for table in ("cooldowns", "leases"):
            records.load(table, [entity.key for entity in entities])
        for entity in entities:
            failed = records.get("cooldowns", entity.key)
            if len(free) >= self._settings.fill_budget:
                self._filled.unavailable(entity.entity_id, _OVER_BUDGET)
            elif failed is not None and self._clock.age_ns(failed) < cooldown_ns:
                self._filled.unavailable(entity.entity_id, _COOLDOWN)
            elif is_leased(records, entity, self._clock):
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

    def _with_telemetry(self, entities: Sequence[EntityKey], issued_ns: int) -> list[EntityKey]:
        """Entities that have samples in the model's input window. The others stop here."""
        entity_ids = [entity.entity_id for entity in entities]
        known = with_telemetry(self._plane, self._family, entity_ids, issued_ns)
        for entity_id in entity_ids:
            if entity_id not in known:
                self._filled.errors[entity_id] = EntityError(NO_TELEMETRY, _NOTHING)
        return [entity for entity in entities if entity.entity_id in known]

    def _tasks(
        self, records: Records, entities: Sequence[EntityKey], rollout: Rollout
    ) -> list[_Task]:
        tasks: list[_Task] = []
        records.load("leases", [entity.key for entity in entities])
        for entity in entities:
            if (lease := take_lease(records, entity, self._clock)) is None:
                self._filled.unavailable(entity.entity_id, _IN_PROGRESS)
            else:
                tasks.append(_Task(entity, Assignment.of(entity, rollout), lease))
        return tasks

    def _compute(self, tasks: Sequence[_Task], rollout: Rollout, issued_ns: int) -> _Computed:
        """Answers of the models to the tasks; empty if not even their input can be read."""
        computed = _Computed()
        if not tasks:
            return computed
        entity_ids = [task.entity.entity_id for task in tasks]
        try:
            batch = features_of(self._plane, self._family, entity_ids, issued_ns)
            tags = tags_of(self._plane, self._family, entity_ids) if self._family is DEMAND else {}
            entities = [task.entity for task in tasks]
            series = SeriesStates(self._store, self._plane, self._family, entities, issued_ns)
            running = Running(self._releases, self._failures, self._family, series)
            for run in running.runs(rollout, [c.assignment.role for c in tasks], batch):
                computed.pending += self._pending(tasks, run, issued_ns)
                if run.role is not Role.SHADOW:
                    computed.codes |= run.codes
                    computed.values |= self._values(tasks, run, issued_ns, tags)
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
        tasks: Sequence[_Task],
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
                tags=tags.get(tasks[index].entity.entity_id, {}),
                model_version=run.release.model_version,
                feature_view_id=run.feature_view_id,
                release_id=run.release.release_id,
                role=run.role,
                assignment_id=tasks[index].assignment.assignment_id,
                lease_id=tasks[index].lease.lease_id,
            )
            for index, rows in run.quantiles.items()
        }

    def _pending(
        self, tasks: Sequence[_Task], run: ModelRun, issued_ns: int
    ) -> list[tuple[bytes, bytes]]:
        """A record for each horizon of a run that answered for at least one entity."""
        if not run.quantiles:
            return []
        first = tasks[0]
        records = []
        for column, horizon in enumerate(self._family.horizons_minutes):
            pending = Pending(
                issued_at_ns=issued_ns,
                horizon_minutes=horizon,
                model_version=run.release.model_version,
                role=run.role,
                quantiles={
                    tasks[index].entity.entity_id: rows[column]
                    for index, rows in run.quantiles.items()
                },
            )
            due_ns = issued_ns + (horizon + TRUTH_MINUTES) * MINUTE_NS
            key = pending.key(first.entity, first.lease.fence, due_ns)
            records.append((key, pending.seal(self._plane)))
        return records

    def _settle(self, records: Records, tasks: Sequence[_Task], computed: _Computed) -> None:
        """Writes the results whose leases still hold, and gives all leases back."""
        for table in ("leases", "values"):
            records.load(table, [task.entity.key for task in tasks])
        ours = [end_lease(records, task.entity, task.lease, self._clock) for task in tasks]
        for index, task in enumerate(tasks):
            entity_id = task.entity.entity_id
            if index in computed.codes:
                code = computed.codes[index]
                message = _MESSAGES.get(code, _TOO_LITTLE)
                self._filled.errors[entity_id] = EntityError(code, message)
            elif not ours[index]:
                self._filled.unavailable(entity_id, _LOST)
            elif index in computed.values:
                self._keep_value(records, task.entity, computed.sealed[index])
                self._filled.values[entity_id] = computed.values[index]
            else:
                self._filled.unavailable(entity_id, _FAILED)
                records.keep("cooldowns", task.entity.key, self._clock.stamped(b""))
        for key, state in computed.states.items():  # all holders of the lease fit the same state
            if not records.keep("series", key, self._clock.stamped(state)):
                self._count("fleetcast_forecast_unkept_total", 1)
        self._keep_pending(records, computed, ours=all(ours))

    def _keep_pending(self, records: Records, computed: _Computed, *, ours: bool) -> None:
        for key, value in computed.pending:
            if not ours:  # a batch that took too long was not answered
                self._count(UNSCORED, Pending.count(value), reason="lease")
            elif not records.keep("pending", key, value):
                self._count(UNSCORED, Pending.count(value), reason="room")

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
