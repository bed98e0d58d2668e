"""An answer to `GET /predictions`: fresh values, new ones where needed, and who has none."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fleetcast.engine import format_time
from fleetcast.forecast.families import DEMAND, FAMILIES, MINUTE_NS
from fleetcast.forecast.serving.filling import NS_PER_SECOND, Filling
from fleetcast.forecast.serving.records import Place, Value, assigned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fleetcast.config.sections import Forecast as ForecastSettings
    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.filling import EntityError
    from fleetcast.forecast.serving.releases import Releases, Rollout
    from fleetcast.forecast.serving.store import PredictionStore


class Predictions:
    """Answers for one process. Safe to share between threads; use it after a fork only."""

    def __init__(
        self,
        store: PredictionStore,
        releases: Releases,
        settings: Callable[[], ForecastSettings],
    ) -> None:
        self._store = store
        self._releases = releases
        self._settings = settings

    def answer(
        self,
        plane: Plane,
        account_id: str,
        family_name: str,
        entity_ids: Sequence[str],
        horizon_minutes: int | None = None,
    ) -> dict[str, object]:
        """The body of the answer for entities without duplicates, in their order.

        Raises `PredictionStoreUnavailable`, `StoreError`.
        """
        family = FAMILIES[family_name]
        horizons = family.horizons_minutes if horizon_minutes is None else (horizon_minutes,)
        now_ns = self._releases.now_ns()
        values: dict[str, Value] = {}
        errors: Mapping[str, EntityError] = {}
        places = [Place.of(plane, account_id, family.name, each) for each in entity_ids]
        rollout, held = self._held(plane, family, places)
        if rollout.primary is not None:
            values = {
                entity_id: value
                for entity_id, value in held.items()
                if self._is_fresh(value, horizons, now_ns)
            }
            missing = [place for place in places if place.entity_id not in values]
            if missing:
                settings = self._settings()
                filling = Filling(self._store, self._releases, settings, plane, family)
                filled = filling.fill(missing, rollout, now_ns)
                values |= filled.values
                errors = filled.errors
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

    def _held(
        self, plane: Plane, family: Family, places: Sequence[Place]
    ) -> tuple[Rollout, dict[str, Value]]:
        """The rollout in force, and the newest value of each entity that it made."""
        with self._store.read() as records:
            rollout = self._releases.current(records, family.name)
            sealed = {
                place.entity_id: value
                for place in places
                if assigned(records, place, rollout) is not None
                and (value := records.get("values", place.key)) is not None
            }
        held = {each: Value.unseal(plane, value) for each, value in sealed.items()}
        released = {release.release_id for _, release in rollout.roles()}
        return rollout, {e: value for e, value in held.items() if value.release_id in released}

    def _is_fresh(self, value: Value, horizons: Sequence[int], now_ns: int) -> bool:
        """Made a moment ago, and still about the future."""
        fresh_ns = self._settings().fresh_seconds * NS_PER_SECOND
        target_ns = value.issued_at_ns + min(horizons) * MINUTE_NS
        return now_ns - value.predicted_at_ns < fresh_ns and now_ns < target_ns


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
    """What all items have; nothing where they differ, or there are none (I11)."""
    distinct = set(ids)
    return distinct.pop() if len(distinct) == 1 else None
