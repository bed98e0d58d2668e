"""Quality of quantiles: pinball loss, weighted quantile loss and coverage, per horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.forecast.rows import Floats


def pinball(truth: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """Pinball loss, in the truth's unit, of `quantiles` [..., levels] for `truth` [...].

    Example: for a truth of 10, a p90 of 8 loses 0.9 * 2 = 1.8, and a p90 of 12 loses 0.1 * 2 = 0.2.
    """
    error = truth[..., None] - quantiles
    level = np.asarray(levels)
    return np.maximum(level * error, (level - 1) * error)


class Score:
    """Sums over all added answers, and the measures from these sums."""

    def __init__(self, levels: Sequence[float], horizons: int) -> None:
        self._levels = levels
        self._count = np.zeros(horizons, np.int64)
        self._size = np.zeros(horizons)
        self._loss = np.zeros((horizons, len(levels)))
        self._covered = np.zeros((horizons, len(levels)))

    def add(self, truth: Floats, quantiles: Floats) -> None:
        """Adds `truth` [times, horizons] and `quantiles` [times, horizons, levels].

        Pairs with a NaN are left out.
        """
        known = ~np.isnan(truth) & ~np.isnan(quantiles).any(-1)
        loss = pinball(truth, quantiles, self._levels)
        self._count += known.sum(0)
        self._size += np.where(known, np.abs(truth), 0.0).sum(0)
        self._loss += np.where(known[..., None], loss, 0.0).sum(0)
        self._covered += (known[..., None] & (truth[..., None] <= quantiles)).sum(0)

    def count(self, horizon: int) -> int:
        """Number of answers scored at the horizon with this index."""
        return int(self._count[horizon])

    def mean_pinball(self, horizon: int) -> float | None:
        """Mean over answers and quantiles; `None` if there is no answer."""
        count = self.count(horizon)
        return float(self._loss[horizon].mean() / count) if count else None

    def weighted_quantile_loss(self, horizon: int) -> float | None:
        """Mean over quantiles of 2 * sum of pinball / sum of |truth|; `None` if that sum is 0."""
        size = float(self._size[horizon])
        return float(2 * self._loss[horizon].mean() / size) if size else None

    def coverage(self, horizon: int) -> list[float] | None:
        """Share of truths at or below each quantile; `None` if there is no answer."""
        count = self.count(horizon)
        return [float(c) / count for c in self._covered[horizon]] if count else None
