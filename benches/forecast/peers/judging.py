"""Answers of peers at the issue times of samples, and the tables of what they lose."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from benches.forecast.answers import answered
from benches.forecast.gain import ratio
from fleetcast.forecast.families import DEMAND, MINUTE_NS
from fleetcast.forecast.features.demand import Intervals
from fleetcast.forecast.features.minutes import averaged
from fleetcast.forecast.features.windows import STEP_NS
from fleetcast.forecast.scores import pinball

ORIGINS = 1000


@dataclass(frozen=True)
class Answers:
    """Quantiles [samples, horizons, quantiles], seconds of CPU for each sample if measured.

    For `unfitted` of them nothing usable came, and the last value's answer stands there.
    """

    quantiles: np.ndarray
    seconds: float | None = None
    unfitted: int = 0


def part_of(samples, count=ORIGINS):
    """All samples, or so many of them, drawn with one seed."""
    chosen = np.zeros(len(samples), bool)
    dice = np.random.default_rng(0)
    chosen[dice.choice(len(samples), min(count, len(samples)), replace=False)] = True
    return samples.where(chosen)


def history(family, rows, issued_ns, steps):
    """At most so many values before the issue time, gaps filled with the value before."""
    if family is DEMAND:
        intervals = Intervals.of(rows)
        ((spacing, _),) = intervals.spacings(np.array([issued_ns]))
        values = intervals.windows(spacing, issued_ns // STEP_NS - steps, steps).offered
    else:
        values = averaged([rows], family.target, issued_ns // MINUTE_NS - steps, steps)[0]
    return pl.Series(values).fill_nan(None).forward_fill().drop_nulls().to_numpy()


def asked(peer, family, samples, rows):
    """`Answers` of a peer, one sample after the other."""
    answers, seconds, unfitted = samples.last_value.copy(), 0.0, 0
    for index, issued_ns in enumerate(samples.issued_ns):
        past = rows[samples.entity[index]]
        values = history(family, past, issued_ns, peer.steps[family.name])
        start = time.process_time()
        try:
            found = np.maximum(peer.answer(family, values), family.floor)
        except Exception:  # noqa: BLE001 - peers raise what they like
            found = np.array(np.nan)
        seconds += time.process_time() - start
        if np.isfinite(found).all():
            answers[index] = found
        else:
            unfitted += 1
    return Answers(answers, seconds / len(samples), unfitted)


def judged(family, samples, rows, forecaster, peers):
    """`Answers` by who gave them: the model, the simple baselines, each peer that may."""
    start = time.process_time()
    model = Answers(answered(forecaster, samples, rows))
    seconds = (time.process_time() - start) / len(samples)
    answers = {
        "model": replace(model, seconds=seconds),
        "last_value": Answers(samples.last_value),
        "same_time": Answers(samples.same_time),
    }
    return answers | {peer.name: asked(peer, family, samples, rows) for peer in peers}


def table(family, samples, answers):
    """A row for each forecast."""
    head = ["forecast", *(f"mean pinball {h}" for h in family.horizons_minutes)]
    head += ["loss / model (90 % of draws)"]
    head += [f"covers {name}" for name in family.quantile_names] + ["ms of CPU a series"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    known = ~np.isnan(samples.truth)
    for who, one in answers.items():
        loss = pinball(samples.truth, one.quantiles, family.quantiles).mean(-1)
        found = ratio(family, samples, one.quantiles, answers["model"].quantiles)
        covered = (samples.truth[..., None] <= one.quantiles)[known].mean(0)
        cells = [who, *(f"{x:.4g}" for x in np.nanmean(loss, axis=0))]
        cells.append(f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})")
        cells += [f"{share:.3f}" for share in covered]
        cells.append("-" if one.seconds is None else f"{one.seconds * 1000:.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def set_lines(family, name, samples, rows, forecaster, peers):
    """Lines on one set; `rows` are those of each entity."""
    able = [peer for peer in peers if family.name in peer.steps]
    unseen = [peer for peer in able if name not in peer.not_on]
    answers = judged(family, samples, rows, forecaster, unseen)
    lines = [
        f"### {name}, with peers",
        "",
        f"{len(samples):,} origins, {len(np.unique(samples.entity))} entities.",
        "",
        *table(family, samples, answers),
        "",
    ]
    notes = [
        f"{who} had no answer at {one.unfitted} of the origins: that of the last value counts."
        for who, one in answers.items()
        if one.unfitted
    ]
    notes += [f"{peer.name} learned from this set." for peer in able if peer not in unseen]
    return [*lines, " ".join(notes), ""] if notes else lines
