"""How right the forecasts were that were served: scored when the truth has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleetcast.errors import StoreError
from fleetcast.forecast.families import DEMAND, FAMILIES, MINUTE_NS
from fleetcast.forecast.features import observed
from fleetcast.forecast.serving.inputs import rows_between
from fleetcast.forecast.serving.records import Pending
from fleetcast.metrics import label

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.metrics import Counters

_BATCH_MAX = 1_000
_DUE_BYTES = 8
_LOSSES = {
    "snr": ("fleetcast_forecast_snr_loss_millidecibels_total", 1_000),
    "demand": ("fleetcast_forecast_demand_loss_bytes_total", 1),
}
"""The counter of each family's loss, and how much of it a unit of the target is."""


class Scoring:
    """Scores what is due. Any number of processes may; each forecast is scored by one of them.

    `plane_of` gives the store of an account, `None` for one that is gone.
    """

    def __init__(
        self,
        store: PredictionStore,
        plane_of: Callable[[str], Plane | None],
        counters: Counters,
    ) -> None:
        self._store = store
        self._plane_of = plane_of
        self._counters = counters

    def score(self, now_ns: int) -> int:
        """How many forecasts were due. Raises `PredictionStoreUnavailable`."""
        due = self._take(now_ns)
        for key, sealed in due:
            account_id, family_name = key[_DUE_BYTES:].split(b"/", 2)[:2]
            plane = self._plane_of(account_id.decode())
            if plane is None:
                continue
            try:
                pending = Pending.unseal(plane, sealed)
                truth = _truth(plane, FAMILIES[family_name.decode()], pending)
            except StoreError:
                continue  # an account made anew under the id of one that is gone, or one that fails
            if truth is not None:
                self._count(FAMILIES[family_name.decode()], pending, truth)
        return len(due)

    def _take(self, now_ns: int) -> list[tuple[bytes, bytes]]:
        """What is due, which nobody else gets: a forecast counts once at most."""
        limit = now_ns.to_bytes(_DUE_BYTES, "big")
        with self._store.write() as records:
            due: list[tuple[bytes, bytes]] = []
            for key, value in records.under("pending", b""):
                if key >= limit or len(due) == _BATCH_MAX:
                    break
                due.append((key, value))
            for key, _ in due:
                records.delete("pending", key)
        return due

    def _count(self, family: Family, pending: Pending, truth: float) -> None:
        labels = {
            "family": family.name,
            "horizon_minutes": pending.horizon_minutes,
            "model_version": pending.model_version,
            "traffic_role": pending.role,
        }
        counter = self._counters.counter
        changes = [(counter(label("fleetcast_forecast_scored_total", **labels)), 1)]
        loss_name, unit = _LOSSES[family.name]
        loss = sum(
            max(level * (truth - value), (level - 1) * (truth - value))
            for level, value in zip(family.quantiles, pending.quantiles, strict=True)
        )
        changes.append((counter(label(loss_name, **labels)), round(loss * unit)))
        for name, value in zip(family.quantile_names, pending.quantiles, strict=True):
            if truth <= value:
                covered = label("fleetcast_forecast_covered_total", **labels, quantile=name)
                changes.append((counter(covered), 1))
        self._counters.add_all(changes)


def _truth(plane: Plane, family: Family, pending: Pending) -> float | None:
    issued = np.array([pending.issued_at_ns])
    # How far apart a pool's intervals are is told by the days before.
    back_minutes = family.history_minutes if family is DEMAND else family.step_minutes
    start_ns = pending.issued_at_ns - back_minutes * MINUTE_NS
    end_ns = pending.issued_at_ns + pending.horizon_minutes * MINUTE_NS
    rows = rows_between(plane, family, pending.entity_id, start_ns, end_ns)
    if rows is None:
        return None
    place = family.horizons_minutes.index(pending.horizon_minutes)
    truth = float(observed(family, rows, issued)[0, place])
    return truth if np.isfinite(truth) else None
