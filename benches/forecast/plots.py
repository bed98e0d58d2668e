"""Pictures for docs/forecasts.md."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fleetcast.forecast.families import MINUTE_NS

COLOURS = {"model": "#1b6ca8", "last_value": "#c8553d", "same_time": "#7a9e3f"}
NAMES = {"model": "model", "last_value": "last value", "same_time": "same time"}


def saved(figure, path, top=1.0):
    figure.tight_layout(rect=(0, 0, 1, top))
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def multiples(family, shown, path):
    """A row a set, a column a horizon: what was said of one entity, and what came.

    `shown` are names of sets, samples of one entity of each, and answers [samples, horizons,
    quantiles].
    """
    horizons = family.horizons_minutes
    size = (3.2 * len(horizons), 2.4 * len(shown) + 0.6)
    figure, axes = plt.subplots(len(shown), len(horizons), figsize=size, sharey="row")
    for row, (name, samples, answers) in zip(np.atleast_2d(axes), shown, strict=True):
        mine = episode(samples)
        unit = unit_of(family, samples.truth[mine])
        truth = samples.truth[mine] / unit
        for h, (axis, horizon) in enumerate(zip(row, horizons, strict=True)):
            when = samples.issued_ns[mine] + horizon * MINUTE_NS
            times, low, middle, high = broken(when, answers[mine, h] / unit)
            axis.fill_between(times, low, high, color=COLOURS["model"], alpha=0.25, lw=0)
            axis.plot(times, middle, color=COLOURS["model"], lw=1)
            axis.plot(when.astype("datetime64[ns]"), truth[:, h], "k.", ms=2)
            axis.set_title(f"{name}, {ahead(horizon)} ahead", fontsize=9)
            locator = mdates.AutoDateLocator(maxticks=4)
            axis.xaxis.set_major_locator(locator)
            axis.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
            axis.tick_params(labelsize=7)
        low, high = np.nanquantile(truth, (0.002, 0.998))
        room = 0.3 * (high - low)
        row[0].set_ylim(0 if family.name == "demand" else low - room, high + room)
        row[0].set_ylabel(unit_name(family, unit), fontsize=8)
    low, _, high = (round(100 * level) for level in family.quantiles)
    marks = (
        Patch(color=COLOURS["model"], alpha=0.25, label=f"{high - low} of 100 should lie in here"),
        Line2D([], [], color=COLOURS["model"], lw=1, label="as many above as below"),
        Line2D([], [], color="k", marker=".", lw=0, ms=4, label="what came"),
    )
    figure.legend(handles=marks, loc="upper center", ncols=3, fontsize=8, frameon=False)
    saved(figure, path, top=1 - 0.35 / size[1])


def usual(samples):
    """The entity that is drawn: one with as many issue times as others."""
    busy = np.bincount(samples.entity)
    found = np.flatnonzero(busy >= np.median(busy[busy > 0]))
    return found[len(found) // 2]


def episode(samples, count=220):
    """Some of an entity's issue times, around the largest change that it saw."""
    level = samples.truth[:, 0]
    middle = int(np.nanargmax(np.abs(level - np.nanmedian(level))))
    start = min(max(middle - count // 2, 0), max(len(samples) - count, 0))
    return slice(start, start + count)


def broken(when_ns, answers):
    """Times and quantiles with a hole wherever issue times are missing: no band lies across it."""
    steps = np.diff(when_ns)
    holes = np.flatnonzero(steps > 1.5 * np.median(steps)) + 1 if len(steps) else []
    times = np.insert(when_ns, holes, when_ns[holes] - 1).astype("datetime64[ns]")
    return times, *np.insert(answers, holes, np.nan, axis=0).T


def unit_of(family, truth):
    """How much of the target an axis counts as one."""
    largest = np.nanmax(truth)
    return 1000.0 ** (np.log10(largest) // 3) if family.name == "demand" and largest > 0 else 1.0


def unit_name(family, unit):
    """The name of an axis."""
    if family.name == "snr":
        return "dB"
    return {1.0: "", 1e3: "k", 1e6: "M", 1e9: "G"}.get(unit, f"{unit:g} ") + "B in 15 minutes"


def ahead(minutes):
    """A horizon in words."""
    return f"{minutes} minutes" if minutes < 60 else f"{minutes // 60} h"


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
