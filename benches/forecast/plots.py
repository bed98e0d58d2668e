"""Pictures for docs/forecasts.md."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

COLOURS = {"model": "#1b6ca8", "last_value": "#c8553d", "same_time": "#7a9e3f"}
NAMES = {"model": "model", "last_value": "last value", "same_time": "same time"}


def saved(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def bands(family, samples, quantiles, entity, path):
    """Truth and band of one entity at each horizon, over the time of the truth."""
    figure, axes = plt.subplots(len(family.horizons_minutes), 1, figsize=(9, 8), sharex=True)
    mine = np.flatnonzero(samples.entity == entity)[:400]
    for h, (axis, horizon) in enumerate(zip(axes, family.horizons_minutes, strict=True)):
        when = (samples.issued_ns[mine] + horizon * 60_000_000_000).astype("datetime64[ns]")
        answer = quantiles[mine, h]
        axis.fill_between(when, answer[:, 0], answer[:, 2], color=COLOURS["model"], alpha=0.25)
        axis.plot(when, answer[:, 1], color=COLOURS["model"], lw=1)
        axis.plot(when, samples.truth[mine, h], "k.", ms=2)
        axis.set_ylabel(f"+{horizon} min")
        if family.name == "demand":
            axis.set_yscale("symlog", linthresh=max(float(np.nanmedian(samples.truth[mine])), 1))
    names = family.quantile_names
    axes[0].set_title(f"{family.target}: {names[0]} to {names[-1]}, median, truth")
    figure.autofmt_xdate()
    saved(figure, path)


def calibration(family, by_set, path):
    """Share of truths below each quantile, beside what it should be."""
    figure, axis = plt.subplots(figsize=(9, 3.5))
    labels, position = [], 0
    for name, scores in by_set.items():
        for h, horizon in enumerate(family.horizons_minutes):
            for level, share in zip(family.quantiles, scores["model"].coverage(h), strict=True):
                axis.plot(position, share, "o", color=COLOURS["model"], ms=5)
                axis.plot(position, level, "_", color="k", ms=12)
            labels.append(f"{name}\n{horizon}")
            position += 1
    axis.set_xticks(range(position), labels, fontsize=7)
    axis.set_ylim(0, 1.02)
    axis.set_title(f"{family.name}: covered (dots) and nominal (dashes)")
    saved(figure, path)


def errors(family, by_set, path):
    """Loss over horizon, as a share of the better baseline's."""
    figure, axes = plt.subplots(1, len(by_set), figsize=(3.2 * len(by_set), 3), sharey=True)
    for axis, (name, scores) in zip(np.atleast_1d(axes), by_set.items(), strict=True):
        horizons = range(len(family.horizons_minutes))
        best = [
            min(scores[w].mean_pinball(h) for w in ("last_value", "same_time")) for h in horizons
        ]
        for who, colour in COLOURS.items():
            ratio = [scores[who].mean_pinball(h) / best[h] for h in horizons]
            axis.plot(ratio, "o-", color=colour, label=NAMES[who])
        axis.set_xticks(list(horizons), family.horizons_minutes)
        axis.set_title(name, fontsize=9)
        axis.set_ylim(0, 2.5)
        axis.set_xlabel("minutes")
    np.atleast_1d(axes)[0].set_ylabel("pinball / better baseline")
    np.atleast_1d(axes)[0].legend(fontsize=7)
    saved(figure, path)
