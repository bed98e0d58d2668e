"""An answer to `GET /predictions`: kept values, new values if needed, and errors of the rest."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fleetcast.engine import format_time
from fleetcast.forecast.families import DEMAND, FAMILIES, MINUTE_NS
from fleetcast.forecast.model import PREDICTION_UNAVAILABLE
from fleetcast.forecast.risk import below
from fleetcast.forecast.serving.clock import NS_PER_SECOND, content
from fleetcast.forecast.serving.computing import Computing
from fleetcast.forecast.serving.failures import Failures
from fleetcast.forecast.serving.filling import EntityError, Filling, Resources
from fleetcast.forecast.serving.records import EntityKey, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fleetcast.config.sections import Forecast as ForecastSettings
    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.rollouts import Rollout
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.metrics import Counters

_BUSY = EntityError(PREDICTION_UNAVAILABLE, "other requests of the tenant are being computed")


class Predictions:
    """Answers for one process. Threads may share the object. Make it after a fork."""

    def __init__(
        self,
        store: PredictionStore,
        releases: Releases,
        settings: Callable[[], ForecastSettings],
        counters: Counters,
    ) -> None:
        self._store = store
        self._releases = releases
        self._clock = releases.clock
        self._settings = settings
        self._resources = Resources(store, releases, Failures(counters, releases.clock), counters)
        self._computing = Computing()

    def answer(
        self,
        plane: Plane,
        account_id: str,
        family_name: str,
        entity_ids: Sequence[str],
        horizon_minutes: int | None = None,
    ) -> dict[str, Any]:
        """The body of the answer for entities without duplicates, in their order.

        Raises `PredictionStoreUnavailable`, `StoreError`.
        """
        family = FAMILIES[family_name]
        horizons = family.horizons_minutes if horizon_minutes is None else (horizon_minutes,)
        now_ns = self._clock.now_ns()
        entities = [EntityKey.of(plane, account_id, family.name, each) for each in entity_ids]
        rollout, values = self._recent(plane, entities, horizons)
        errors: dict[str, EntityError] = {}
        if rollout.primary is not None and len(values) < len(entities):
            with self._computing.turn(account_id) as mine:
                # Another request of the tenant may have computed the values while this one waited.
                rollout, values = self._recent(plane, entities, horizons)
                missing = [entity for entity in entities if entity.entity_id not in values]
                if not mine:
                    errors = {entity.entity_id: _BUSY for entity in missing}
                elif missing and rollout.primary is not None:
                    filling = Filling(self._resources, self._settings(), plane, family)
                    filled = filling.fill(missing, rollout)
                    values, errors = values | filled.values, filled.errors
        ordered = [(each, values[each]) for each in entity_ids if each in values]
        return {
            "model_family": family.name,
            "captured_at": format_time(now_ns),
            "model_release_id": _shared(value.release_id for _, value in ordered),
            "traffic_role": _shared(value.role for _, value in ordered),
            "items": [
                _item(family, entity_id, value, horizon)
                for entity_id, value in ordered
                for horizon in horizons
            ],
            "entity_errors": [
                {"entity_id": each, "code": errors[each].code, "message": errors[each].message}
                for each in entity_ids
                if each in errors
            ],
        }

    @staticmethod
    def with_risk(document: dict[str, Any], threshold: float) -> dict[str, Any]:
        """Returns an answer with the probability that each value is below `threshold`, or not.

        `threshold` is in dB or bytes. Example: 0.1 below the threshold `snr_db_p10`.
        """
        family = FAMILIES[document["model_family"]]
        for item in document["items"]:
            probability = float(below(family, np.array([*item["value"].values()]), threshold))
            item |= {"below": probability, "above": 1 - probability}
        return document | {"threshold": threshold}

    def _recent(
        self, plane: Plane, entities: Sequence[EntityKey], horizons: Sequence[int]
    ) -> tuple[Rollout, dict[str, Value]]:
        """The rollout in force, and its recent values whose targets still lie in the future."""
        valid_ns = self._settings().fresh_seconds * NS_PER_SECOND
        until_ns = self._clock.now_ns() - min(horizons) * MINUTE_NS
        with self._store.read() as records:
            rollout = self._releases.current(records, entities[0].family)
            records.load("values", [entity.key for entity in entities])
            held = [(entity, records.get("values", entity.key)) for entity in entities]
        recent: dict[str, Value] = {}
        for entity, record in held:
            if record is not None and self._clock.age_ns(record) < valid_ns:
                value = Value.unseal(plane, content(record))
                if value and value.issued_at_ns > until_ns and value.is_of(entity, rollout):
                    recent[entity.entity_id] = value
        return rollout, recent


def _item(family: Family, entity_id: str, value: Value, horizon: int) -> dict[str, object]:
    numbers = zip(_names(family), value.quantiles[str(horizon)], strict=True)
    item: dict[str, object] = {
        "link_id": entity_id,
        "horizon_minutes": horizon,
        "predicted_at": format_time(value.predicted_at_ns),
        "assignment_id": value.assignment_id,
        "lease_id": value.lease_id,
        "model_version": value.model_version,
        "feature_view_id": value.feature_view_id,
        "model_release_id": value.release_id,
        "traffic_role": value.role,
        "value": dict(numbers),
    }
    if family is DEMAND:
        end_ns = value.issued_at_ns + horizon * MINUTE_NS
        item["demand"] = {
            "pool_id": entity_id,
            "pool_tags": value.tags,
            "issued_at": format_time(value.issued_at_ns),
            "window_start": format_time(end_ns - family.step_ns),
            "window_end": format_time(end_ns),
        }
    return item


@cache
def _names(family: Family) -> tuple[str, ...]:
    return tuple(f"{family.target}_{name}" for name in family.quantile_names)


def _shared(ids: Iterable[str]) -> str | None:
    """The id that all items have; `None` if they differ, or there are none."""
    distinct = set(ids)
    return distinct.pop() if len(distinct) == 1 else None
