"""Scores of the forecasts that were served, once their truth has come."""

from __future__ import annotations

import math
import time
from itertools import islice
from typing import TYPE_CHECKING

from fleetcast.engine import OpenScores
from fleetcast.forecast.families import FAMILIES, MINUTE_NS
from fleetcast.forecast.serving.failures import Failures
from fleetcast.forecast.serving.inputs import truths_of
from fleetcast.forecast.serving.records import TRUTH_MINUTES, UNSCORED
from fleetcast.forecast.serving.tables import due, family_of, owner
from fleetcast.metrics import label, sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.engine import Plane
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.serving.store import PredictionStore
    from fleetcast.metrics import Counters

_TAKEN = 16
"""Batches taken at once. A process that ends loses the batches that it has not scored."""
_LONGEST_MINUTES = max(h for family in FAMILIES.values() for h in family.horizons_minutes)
_DAY_NS = 24 * 60 * MINUTE_NS
_END = b"\xff" * 9
_LOSSES = {
    "snr": ("fleetcast_forecast_snr_loss_millidecibels_total", 1_000),
    "demand": ("fleetcast_forecast_demand_loss_bytes_total", 1),
}
"""The counter of each family's loss, and the counts for one unit of the target."""


class Scoring:
    """Scores due forecasts. Several processes may score; each forecast is scored once.

    `plane_of` returns the store of an account, or `None` if the account is gone.
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
        self._failures = Failures(counters, store.clock)

    def score(self, now_ns: int, seconds: float = 10.0, *, is_clock_believed: bool = True) -> int:
        """Scores for at most `seconds`; returns the number of due forecasts.

        A clock that is in doubt gives up no forecast: long overdue forecasts are left alone (O2).
        Raises `PredictionStoreUnavailable`.
        """
        until = time.monotonic() + seconds
        first = b"" if is_clock_believed else due(now_ns - _DAY_NS)
        if is_clock_believed:
            self._drop_impossible(now_ns)
        count = 0
        while taken := self._take(first, due(now_ns)):
            for key, value in taken:
                count += OpenScores.count(value)
                self._score(key, value)
            if time.monotonic() >= until:
                break
        return count

    def _drop_impossible(self, now_ns: int) -> None:
        """Gives up forecasts issued by a clock far ahead, which would wait for years."""
        latest = due(now_ns + 2 * (_LONGEST_MINUTES + TRUTH_MINUTES) * MINUTE_NS)
        while taken := self._take(latest, _END):
            for key, value in taken:
                self._unscored(key, OpenScores.count(value), "clock")

    def _score(self, key: bytes, value: bytes) -> None:
        family = FAMILIES[family_of(key)]
        try:
            plane = self._plane_of(owner("pending", key).decode())
            if plane is None:
                return  # the tenant is gone
            scores = OpenScores.unseal(plane, value)
            if scores is None:  # its data key was dropped
                self._unscored(key, OpenScores.count(value), "failure")
                return
            forecasts = scores.quantiles
            truths = truths_of(
                plane, family, list(forecasts), scores.issued_at_ns, scores.horizon_minutes
            )
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            # A batch that fails, for example because its store fails, must not stop the next batch.
            self._unscored(key, OpenScores.count(value), "failure")
            self._failures.of_batch(family.name, error)
            return
        known = [
            (quantiles, truth)
            for quantiles, truth in zip(forecasts.values(), truths, strict=True)
            if math.isfinite(truth)
        ]
        if len(known) < len(truths):
            self._unscored(key, len(truths) - len(known), "truth")
        if known:
            self._count(family, scores, known)

    def _unscored(self, key: bytes, count: int, reason: str) -> None:
        counter = self._counters.counter(sample(UNSCORED, family=family_of(key), reason=reason))
        self._counters.add(counter, count)

    def _take(self, first: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        """Takes due batches. No other process gets them, so a forecast counts at most once."""
        with self._store.write() as records:
            found = islice(records.under("pending", b"", first), _TAKEN)
            taken = [(key, value) for key, value in found if key < end]
            for key, _ in taken:
                records.delete("pending", key)
        return taken

    def _count(
        self, family: Family, scores: OpenScores, known: list[tuple[list[float], float]]
    ) -> None:
        """Counts forecasts, as quantiles, whose truth is known."""
        labels = {
            "family": family.name,
            "horizon_minutes": scores.horizon_minutes,
            "model_version": scores.model_version,
            "traffic_role": scores.role,
        }
        counter = self._counters.counter
        changes = [(counter(label("fleetcast_forecast_scored_total", **labels)), len(known))]
        loss_name, unit = _LOSSES[family.name]
        loss = sum(
            max(level * (truth - value), (level - 1) * (truth - value))
            for quantiles, truth in known
            for level, value in zip(family.quantiles, quantiles, strict=True)
        )
        changes.append((counter(label(loss_name, **labels)), round(loss * unit)))
        for index, name in enumerate(family.quantile_names):
            covered = sum(truth <= quantiles[index] for quantiles, truth in known)
            series = label("fleetcast_forecast_covered_total", **labels, quantile=name)
            changes.append((counter(series), covered))
        self._counters.add_all(changes)
