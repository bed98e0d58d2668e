"""From sets to a model: samples, networks, calibration, file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.forecast.families import DEMAND, SNR
from fleetcast.forecast.features import view
from fleetcast.forecast.training.arrays import ArrayFunctions
from fleetcast.forecast.training.calibrate import calibrate
from fleetcast.forecast.training.export import Trained, exported
from fleetcast.forecast.training.material import collected
from fleetcast.forecast.training.network import Lesson, Recipe, train
from fleetcast.forecast.training.scaling import DEMAND_FLOOR, scaled
from fleetcast.forecast.training.sets import sets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleetcast.forecast.families import Family
    from fleetcast.forecast.rows import Floats
    from fleetcast.forecast.training.material import Material, Part
    from fleetcast.forecast.training.samples import Samples

ENSEMBLE = 4
"""Networks whose heads are averaged: steadier than one network, and all fit into 100 KB."""
RECIPES = {SNR: Recipe(width=58, decay=0.5), DEMAND: Recipe()}
"""More decay makes bands hold more alike on different links, and uses each input less."""
_TIE = 1e-3
"""A truth so near to no bytes, on a logarithmic scale, counts as none."""
SNR_WEIGHT_POWER = 0.5
"""Errors count in dB times unit ** (power - 1): a power of 1 would let the wildest links rule."""


@dataclass(frozen=True)
class Learned:
    """The model that ships, and how its recipe is judged.

    `trained`, with the file `content`, learned from all days. The file `judged` is of the model
    without the judged days. `material` has these days apart.
    """

    content: bytes
    trained: Trained
    judged: bytes
    material: Material


def learned(family: Family, directory: Path, seed: int, say: Callable[[str], None]) -> Learned:
    """Trains and calibrates on the sets in `directory`, twice. Raises `OperatorError`."""
    material, data = collected(family, directory, seed, say), _data_hash(family, directory)
    judged, trained = (
        fitted(family, each, RECIPES[family], seed, data, say)
        for each in (material, material.with_judged_days())
    )
    return Learned(exported(trained), trained, exported(judged), material)


def _data_hash(family: Family, directory: Path) -> str:
    digest = hashlib.sha256()
    for one in sets_of(family):
        if one.learned:
            digest.update(one.sha256(directory).encode())
    return digest.hexdigest()


def fitted(
    family: Family,
    material: Material,
    recipe: Recipe,
    seed: int,
    training_data: str,
    say: Callable[[str], None],
) -> Trained:
    """Networks trained on `material.learn`, and calibrated on `material.calibrate`."""
    lesson = lesson_of(family, material.learn)
    networks = []
    for member in range(ENSEMBLE):
        say(f"training network {member + 1} of {ENSEMBLE} on {len(lesson.inputs)} samples")
        networks.append(train(lesson, recipe, seed + member))
    held = lesson_of(family, material.calibrate)
    heads = np.mean([network.heads(held.inputs) for network in networks], axis=0)
    truth, floor = held.truth, -np.inf
    if family is DEMAND:
        truth = np.log(np.maximum(truth, np.finfo(np.float64).tiny))
        floor = np.log(DEMAND_FLOOR / (1 + DEMAND_FLOOR)) + _TIE
    weight = np.concatenate(
        [np.full(len(p.samples), p.share / len(p.samples)) for p in material.calibrate]
    )
    calibration = calibrate(heads, truth, weight, held.apart, family.quantiles, floor)
    digest = hashlib.sha256(view(family).id.encode())
    for network in networks:
        for name in sorted(network.weights):
            digest.update(network.weights[name].tobytes())
    for factors in (calibration.shift, calibration.lower, calibration.upper):
        digest.update(factors.tobytes())
    version = f"{family.name}-{digest.hexdigest()[:12]}"
    return Trained(family, networks, calibration, version, training_data)


def lesson_of(family: Family, parts: Sequence[Part]) -> Lesson:
    """All parts as one lesson, weighted so that each part's usual loss is its share."""
    inputs, truths, weights, apart = [], [], [], []
    for part in parts:
        samples = part.samples
        scale = scaled(family, ArrayFunctions(), samples.matrix)
        truth = (samples.truth - scale.offset) / scale.unit
        if family is SNR:
            weight = scale.unit**SNR_WEIGHT_POWER
        else:
            # Each pool counts the same, by its mean over all weeks.
            usual = _usual(samples)
            weight = np.broadcast_to(scale.unit / usual[:, None], truth.shape)
        usual_loss = np.nanmean(np.abs(truth - (family is DEMAND)) * weight)
        inputs.append(scale.inputs)
        apart.append(scale.apart[:, 0] == 1)
        truths.append(truth)
        weights.append(weight * (part.share / usual_loss / len(samples)))
    weight = np.concatenate(weights)
    return Lesson(
        np.concatenate(inputs),
        np.concatenate(truths),
        weight * (len(weight) / sum(part.share for part in parts)),
        np.concatenate(apart),
        family.quantiles,
        exponential=family is DEMAND,
    )


def _usual(samples: Samples) -> Floats:
    """The mean truth of each sample's entity."""
    means = np.nanmean(samples.truth, axis=1)
    total = np.bincount(samples.entity, means)
    count = np.maximum(np.bincount(samples.entity), 1)
    return np.maximum(total / count, 1e-9)[samples.entity]
