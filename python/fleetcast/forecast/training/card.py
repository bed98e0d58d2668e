"""The model card: structure of a model, its training data, and scores on later periods."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.features import view
from fleetcast.forecast.onnx import Model
from fleetcast.forecast.scores import Score
from fleetcast.forecast.training.sets import sets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Floats
    from fleetcast.forecast.training.export import Trained
    from fleetcast.forecast.training.learn import Learned
    from fleetcast.forecast.training.material import Part
    from fleetcast.forecast.training.sets import Span

_LIMITS = {
    "snr": """\
- Bands are calibrated over whole sets: on one link, or on a day unlike those before, they hold
  less or more than they say.
- Levels that come in steps (terrestrial links that report tenths or thirds of a dB) have truths
  that equal the last value in up to half of all minutes; no quantile holds exactly its share then.
- Events that no history shows, such as the start of rain, are not foreseen.
- Future geometry without elements is carried on from the last half hour: good for medium and
  high orbits, of little use for the ten minutes of a low one.""",
    "demand": """\
- Bands are calibrated over whole sets: on one pool they hold less or more than they say.
- Pools that are idle much of the time have truths of 0, and p10 cannot go below: it covers more
  than 10 % there.
- A first-ever burst is not foreseen; p99 knows only bursts of the last seven days.
- Time of day and week enter through the pool's own last seven days: holidays are unknown.""",
}

_LAST_FIT = """\
This model also learned from the days that its recipe was judged on, of the sets that are learned
from. Its calibration is on days and simulated series that it did not learn from."""


def test_scores(models: Mapping[str, Model], family: Family, part: Part) -> dict[str, Score]:
    """Scores of models by name, and of the baselines, on samples of a test period."""
    samples = part.samples
    answers: dict[str, Floats] = {
        **{name: model.quantiles(samples.matrix) for name, model in models.items()},
        "last_value": samples.last_value,
        "same_time": samples.same_time,
    }
    scores = {}
    for who, quantiles in answers.items():
        scores[who] = Score(family.quantiles, len(family.horizons_minutes))
        scores[who].add(samples.truth, quantiles)
    return scores


def card(learned: Learned) -> str:
    """Returns the card as Markdown."""
    family, material = learned.trained.family, learned.material
    lines = [*_make(learned), "", "## Data and split", "", *_split(family)]
    shares = ", ".join(f"{part.name} ({len(part.samples):,} samples)" for part in material.learn)
    lines += ["", f"Samples: {shares}.", "", _LAST_FIT, "", "## On the later period", ""]
    files = {"judged": learned.judged, "shipped": learned.content}
    models = {name: Model(file, family, view(family)) for name, file in files.items()}
    lines += [f"`judged` is {models['judged'].metadata.model_version}, without this period.", ""]
    for part in material.test:
        lines += [*_table(family, part, test_scores(models, family, part)), ""]
    lines += ["## Calibration", "", *_calibration(learned.trained)]
    return "\n".join([*lines, "", "## Limits", "", _LIMITS[family.name], ""])


def _make(learned: Learned) -> list[str]:
    trained = learned.trained
    family = trained.family
    width = len(trained.networks[0].weights["b1"])
    digest = hashlib.sha256(learned.content).hexdigest()
    return [
        f"# {trained.model_version}",
        "",
        (
            f"{len(trained.networks)} networks with two hidden layers of {width}, their heads"
            f" averaged; {len(learned.content):,} bytes; opset 18."
        ),
        "",
        f"- feature view `{view(family).id}`, {len(view(family).features)} features",
        (
            f"- horizons {', '.join(map(str, family.horizons_minutes))} minutes;"
            f" quantiles {', '.join(family.quantile_names)}"
        ),
        f"- SHA-256 of the training data `{trained.training_data}`",
        f"- SHA-256 of the model file `{digest}`",
    ]


def _split(family: Family) -> list[str]:
    lines = [
        "| set | licence | learned from | calibrated on | judged on |",
        "|---|---|---|---|---|",
    ]
    for one in sets_of(family):
        spans = (one.train, one.calibrate) if one.learned else ()
        shown = [_span(span) for span in spans] or ["-", "-"]
        lines.append(f"| {one.origin} | {one.licence} | {' | '.join(shown)} | {_span(one.test)} |")
    return lines


def _calibration(trained: Trained) -> list[str]:
    family, factors = trained.family, trained.calibration
    rows = zip(
        family.horizons_minutes,
        factors.shift,
        factors.lower[: 1 + (family is DEMAND)].T,
        factors.upper,
        strict=True,
    )
    return [
        (
            "Per horizon: shift of the middle in bands, factors of the lower gap (of pools that are"
            " idle in 1 % of the windows or more, after the slash) and of the upper."
        ),
        "",
        *(
            f"- {horizon} minutes: {shift:+.3f}, {' / '.join(f'{x:.3f}' for x in lower)},"
            f" {upper:.3f}"
            for horizon, shift, lower, upper in rows
        ),
    ]


def _span(span: Span) -> str:
    start, end = (
        datetime.fromtimestamp(t / 1e9, UTC).strftime("%Y-%m-%d %H:%M")
        for t in (span.start_ns, span.end_ns)
    )
    return f"{start} to {end}"


def _table(family: Family, part: Part, scores: dict[str, Score]) -> list[str]:
    samples = part.samples
    days = len(np.unique(samples.issued_ns // 86_400_000_000_000))
    covers = " | ".join(f"covers {name}" for name in family.quantile_names)
    lines = [
        (
            f"{part.name}: {len(samples):,} issue times,"
            f" {len(np.unique(samples.entity))} entities, {days} days"
        ),
        "",
        f"| horizon | forecast | mean pinball | weighted quantile loss | {covers} |",
        "|---|---|---|---|" + "---|" * len(family.quantiles),
    ]
    for index, horizon in enumerate(family.horizons_minutes):
        for who, score in scores.items():
            coverage = " | ".join(f"{share:.3f}" for share in score.coverage(index) or [])
            lines.append(
                f"| {horizon} | {who} | {score.mean_pinball(index):.4g}"
                f" | {score.weighted_quantile_loss(index):.4f} | {coverage} |"
            )
    return lines
