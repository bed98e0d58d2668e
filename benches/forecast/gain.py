"""By how much one forecast loses less than another, with days drawn anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benches.forecast.answers import DAY_NS
from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.scores import pinball

RESAMPLED = 1000
MAIN = {"snr": ("last_value", "mean pinball"), "demand": ("same_time", "weighted quantile loss")}
"""The baseline that a family is measured against, and by what."""


@dataclass(frozen=True)
class Ratio:
    """The main measure, mean over horizons, over that of a reference.

    `low` and `high` are its 5th and 95th percentile when days are drawn anew.
    """

    value: float
    low: float
    high: float


def ratio(family, samples, answer, reference):
    """`Ratio` of answers [samples, horizons, quantiles] to those of a reference."""
    days, day = np.unique(samples.issued_ns // DAY_NS, return_inverse=True)
    ours, theirs, sizes = (np.zeros((len(days), 4)) for _ in range(3))
    for h in range(4):
        known = ~np.isnan(samples.truth[:, h])
        y = samples.truth[known, h]
        for total, q in ((ours, answer), (theirs, reference)):
            loss = pinball(y, q[known, h], family.quantiles).mean(1)
            total[:, h] = np.bincount(day[known], loss, minlength=len(days))
        size = np.abs(y) if family is DEMAND else np.ones(len(y))
        sizes[:, h] = np.bincount(day[known], size, minlength=len(days))

    def of(chosen):
        weight = sizes[chosen].sum(0)
        mean = [np.mean(total[chosen].sum(0) / weight) for total in (ours, theirs)]
        return mean[0] / mean[1]

    dice = np.random.default_rng(0)
    drawn = [of(dice.integers(0, len(days), len(days))) for _ in range(RESAMPLED)]
    low, high = np.quantile(drawn, (0.05, 0.95))
    return Ratio(of(np.arange(len(days))), low, high)


def gain(family, samples, answer, reference):
    """How far below the reference, in words."""
    found = ratio(family, samples, answer, reference)
    return f"{1 - found.value:.1%} ({1 - found.high:.1%} to {1 - found.low:.1%})"


def beside_simple(family, samples, answer, baselines):
    """Mean pinball at each horizon by that of the best baseline there, in words."""
    ours, *theirs = (
        np.nanmean(pinball(samples.truth, quantiles, family.quantiles).mean(-1), axis=0)
        for quantiles in (answer, *baselines)
    )
    ratios = ours / np.min(theirs, axis=0)
    return f"{', '.join(f'{ratio:.3f}' for ratio in ratios)}, mean {ratios.mean():.3f}"
