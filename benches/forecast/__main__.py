"""The figures and pictures of docs/forecasts.md.

    python -m benches.forecast --data DIR [--docs DIR] [--family snr]

DIR holds the sets (links/, pools/). Everything between the markers of docs/forecasts.md is written
anew, a family at a time; needs what requirements/train.txt pins. Some ten minutes on one core, a
family a process.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from benches.forecast import plots
from benches.forecast.answers import DAY_NS, answered
from benches.forecast.gain import MAIN, beside_simple, gain
from benches.forecast.judged import as_judged
from benches.forecast.outages import outage_lines
from benches.forecast.page import say, write
from benches.forecast.trees import BATCH, Trees
from benches.harness.paths import ROOT
from fleetcast.forecast.families import DEMAND, FAMILIES, MINUTE_NS, SNR
from fleetcast.forecast.features import demand, reduce, snr, view
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.onnx import Model
from fleetcast.forecast.scores import Score, pinball
from fleetcast.forecast.training.arrays import ArrayFunctions
from fleetcast.forecast.training.export import exported
from fleetcast.forecast.training.learn import RECIPES, fitted
from fleetcast.forecast.training.material import Material, collected
from fleetcast.forecast.training.samples import at_steps, sampled
from fleetcast.forecast.training.scaling import scaled
from fleetcast.forecast.training.sets import Span, sets_of

ACTIVE_DB = 1.0
TIES = 0.005
DRAWN_MINUTES = {SNR: 5, DEMAND: 45}
MODELS = ("model", "last_value", "same_time")
SIMPLE = ("last_value", "same_time", "seasonal_naive")


@dataclass
class Judged:
    """One test set: its samples, and answers [samples, horizons, quantiles] by who gave them."""

    name: str
    samples: object
    rows: list
    answers: dict

    def score(self, family, who):
        score = Score(family.quantiles, len(family.horizons_minutes))
        score.add(self.samples.truth, self.answers[who])
        return score


def seasonal_naive(family, samples, rows):
    """The same time yesterday, with its errors on the six days before."""
    answers = np.full((*samples.truth.shape, 3), np.nan)
    of = snr if family is SNR else demand
    for place in np.unique(samples.entity):
        mine = samples.entity == place
        days = of.same_time(of.past(rows[place], samples.issued_ns[mine]))
        errors = reduce.quantiles(days[..., :-1] - days[..., 1:], family.quantiles)
        answers[mine] = days[..., :1] + np.nan_to_num(errors)
    if family is DEMAND:
        answers = np.maximum(answers, 0)
    return np.where(np.isnan(answers), samples.same_time, answers)


def table(family, judged):
    names = family.quantile_names
    head = ["minutes", "forecast", *(f"pinball {n}" for n in names), "mean", "WQL", "per series"]
    head += [f"covers {n}" for n in names] + ["width"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    truth = judged.samples.truth
    for h, horizon in enumerate(family.horizons_minutes):
        known = ~np.isnan(truth[:, h])
        y, entity = truth[known, h], judged.samples.entity[known]
        for who, answer in judged.answers.items():
            q = answer[known, h]
            loss = pinball(y, q, family.quantiles)
            each = np.bincount(entity, loss.mean(1)) / np.maximum(np.bincount(entity), 1)
            size = np.bincount(entity, np.abs(y)) / np.maximum(np.bincount(entity), 1)
            used = size > 0
            cells = [f"{x:.4g}" for x in loss.mean(0)]
            cells += [f"{loss.mean():.4g}", f"{(2 * loss.sum(0) / np.abs(y).sum()).mean():.4f}"]
            cells.append(f"{np.median(2 * each[used] / size[used]):.4f}")
            cells += coverage(y, q)
            cells.append(f"{np.median(q[:, -1] - q[:, 0]):.4g}")
            lines.append(f"| {horizon} | {who} | " + " | ".join(cells) + " |")
    return lines


def coverage(y, q):
    """Shares at or below each quantile; in brackets strictly below, where ties matter."""
    at_most, below = (y[:, None] <= q).mean(0), (y[:, None] < q).mean(0)
    return [
        f"{upper:.3f}" if upper - lower < TIES else f"{upper:.3f} ({lower:.3f})"
        for upper, lower in zip(at_most, below, strict=True)
    ]


def missed_by(family, truth, answers):
    """By how much each quantile's level misses the shares below and at or below it, at worst."""
    known = ~np.isnan(truth)[..., None]
    count = known.sum(0)
    below, at_most = (
        (known & side).sum(0) / count
        for side in (truth[..., None] < answers, truth[..., None] <= answers)
    )
    return np.maximum(np.maximum(below - family.quantiles, family.quantiles - at_most), 0).max(0)


def active(family, judged):
    """Loss where the level moved by more than 1 dB since it was last seen."""
    samples = judged.samples
    last = samples.matrix[:, view(family).index("last")]
    moved = np.abs(samples.truth - last[:, None]) > ACTIVE_DB
    cells = []
    for who in MODELS:
        loss = pinball(samples.truth, judged.answers[who], family.quantiles).mean(-1)
        cells.append(f"{who} {np.nanmean(np.where(moved, loss, np.nan)):.3f}")
    known = ~np.isnan(samples.truth)
    share = moved[known].mean()
    return f"Level moved by more than 1 dB ({share:.1%} of the truths): " + ", ".join(cells)


def without(family, material, name):
    """Scores of a model on a set that it was trained without."""

    def kept(parts):
        return [part for part in parts if part.name.split(",")[0] != name]

    lower = Material(kept(material.learn), kept(material.calibrate), material.test)
    trained = fitted(family, lower, RECIPES[family], 0, "-", say)
    return Forecaster(family, Model(exported(trained), family, view(family)))


def family_lines(name, data, pictures):
    family = FAMILIES[name]
    material = collected(family, data, 0, say)
    forecaster = as_judged(family)
    model = forecaster._model
    say("training trees")
    trees = Trees(family, material, lambda x: scaled(family, ArrayFunctions(), x))
    lines = [f"## {family.name}", "", files_line(family, forecaster), ""]
    by_set, shown, sets = {}, [], {one.name: one for one in sets_of(family)}
    for part in material.test:
        say(f"judging on {part.name}")
        samples, rows = part.samples, list(sets[part.name].rows(data).values())
        answers = {
            "model": answered(forecaster, samples, rows),
            "trees": trees.quantiles(samples.matrix),
            "last_value": samples.last_value,
            "same_time": samples.same_time,
            "seasonal_naive": seasonal_naive(family, samples, rows),
        }
        judged = Judged(part.name, samples, rows, answers)
        by_set[part.name] = {who: judged.score(family, who) for who in answers}
        lines += set_lines(family, judged, sets[part.name], material)
        lines += outage_lines(forecaster, sets[part.name], rows)
        shown.append(drawn(family, forecaster, judged))
    plots.multiples(family, shown, pictures / f"{family.name}.png")
    lines += [f"![forecasts and truths of each set](forecasts/{family.name}.png)", ""]
    plots.calibration(family, by_set, pictures / f"{family.name}-calibration.png")
    plots.errors(family, by_set, pictures / f"{family.name}-errors.png")
    lines += [f"![error by horizon](forecasts/{family.name}-errors.png)", ""]
    lines += [f"![calibration](forecasts/{family.name}-calibration.png)", ""]
    return [*lines, *cost_lines(family, model, trees, material), ""]


def files_line(family, judged):
    """The file that is judged and the file that ships."""
    versions = [each.metadata.model_version for each in (judged, Forecaster(family))]
    return (
        f"Judged: `benches/forecast/models/{family.name}-judged.onnx` (`{versions[0]}`), without"
        f" the judged days. Ships: `python/fleetcast/forecast/models/{family.name}.onnx`"
        f" (`{versions[1]}`), of the same recipe, with them."
    )


def drawn(family, forecaster, judged):
    """The set's name, samples of one of its entities close together, and the model's answers."""
    entity = plots.usual(judged.samples)
    mine, rows = judged.samples.entity == entity, judged.rows[entity]
    span = Span(judged.samples.issued_ns[mine].min(), judged.samples.issued_ns[mine].max() + 1)
    close = sampled(family, {judged.name: rows}, at_steps(span, DRAWN_MINUTES[family] * MINUTE_NS))
    return judged.name, close, answered(forecaster, close, [rows])


def set_lines(family, judged, one, material):
    samples, (reference, measure) = judged.samples, MAIN[family.name]
    days = len(np.unique(samples.issued_ns // DAY_NS))
    simple = [judged.answers[who] for who in SIMPLE]
    lines = [
        f"### {judged.name}",
        "",
        (
            f"{one.origin}. {len(samples):,} origins, {len(np.unique(samples.entity))} entities,"
            f" {days} days."
        ),
        "",
        *table(family, judged),
        "",
        (
            f"{measure[0].upper()}{measure[1:]}, mean over horizons, below that of {reference}"
            " (90 % of draws of days): "
            + ", ".join(
                f"{who} {gain(family, samples, judged.answers[who], judged.answers[reference])}"
                for who in ("model", "trees")
            )
            + "."
        ),
        "",
        (
            "Mean pinball by that of the best simple baseline at each horizon: model"
            f" {beside_simple(family, samples, judged.answers['model'], simple)}."
        ),
    ]
    if one.learned:
        apart = answered(without(family, material, judged.name), samples, judged.rows)
        worst = missed_by(family, samples.truth, apart)
        lines.append("")
        lines.append(
            f"A model trained without this set:"
            f" {gain(family, samples, apart, judged.answers[reference])}; coverage off by at most"
            f" {', '.join(f'{w:.3f}' for w in worst)} for {', '.join(family.quantile_names)};"
            " mean pinball by that of the best simple baseline"
            f" {beside_simple(family, samples, apart, simple)}."
        )
    if family is SNR:
        lines += ["", active(family, judged) + "."]
    return [*lines, ""]


def cost_lines(family, model, trees, material):
    matrix = material.test[0].samples.matrix[:BATCH]
    taken = []
    for _ in range(200):
        start = time.perf_counter()
        model.quantiles(matrix)
        taken.append(time.perf_counter() - start)
    inputs = scaled(family, ArrayFunctions(), matrix).inputs
    size, seconds = trees.as_onnx(inputs)
    return [
        (
            f"{BATCH} entities on one core: model {np.median(taken) * 1000:.2f} ms; trees, as 12"
            f" ONNX files of {size / 1e6:.1f} MB in all, {seconds * 1000:.1f} ms."
        )
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--family", choices=list(FAMILIES), action="append")
    options = parser.parse_args()
    names = options.family or list(FAMILIES)
    pictures = options.docs / "forecasts"
    pictures.mkdir(exist_ok=True)
    page = options.docs / "forecasts.md"
    with ProcessPoolExecutor(len(names)) as processes:
        families = processes.map(family_lines, names, repeat(options.data), repeat(pictures))
        for name, lines in zip(names, families, strict=True):
            write(page, name, lines)


if __name__ == "__main__":
    main()
