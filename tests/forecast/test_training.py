"""Training: the graph reckons as the arrays did, and the seed decides all."""

import dataclasses

import numpy as np
import pytest

from fleetcast.forecast.families import DEMAND, FAMILIES, MINUTE_NS, SNR
from fleetcast.forecast.features import view
from fleetcast.forecast.onnx import Model
from fleetcast.forecast.rows import Rows
from fleetcast.forecast.training.arrays import ArrayFunctions
from fleetcast.forecast.training.augment import variants
from fleetcast.forecast.training.calibrate import calibrate
from fleetcast.forecast.training.export import exported
from fleetcast.forecast.training.learn import fitted
from fleetcast.forecast.training.material import Material, Part
from fleetcast.forecast.training.network import (
    EXPONENT_LIMIT,
    Lesson,
    Recipe,
    softplus,
    spread_out,
    train,
)
from fleetcast.forecast.training.samples import drawn, sampled
from fleetcast.forecast.training.scaling import scaled
from fleetcast.forecast.training.sets import Span
from fleetcast.forecast.training.simulated import moving_links, smooth_pools

DAY_NS = 1440 * MINUTE_NS
START = 1_700_006_400_000_000_000
TINY = Recipe(width=8, epochs=2, batch=128)


def material(family, seed=0):
    days, first = (2, 0) if family is SNR else (9, 7)
    span = Span(START, START + days * DAY_NS)
    entities = (moving_links if family is SNR else smooth_pools)(span, 6, seed)
    times = drawn(Span(START + first * DAY_NS, span.end_ns), family.step_ns, 80, seed)
    part = Part("simulated", sampled(family, entities, times), 1.0)
    return Material([part], [part], [part])


@pytest.fixture(scope="module", params=FAMILIES.values(), ids=FAMILIES)
def training(request):
    family = request.param
    of = material(family)
    return of, fitted(family, of, TINY, 1, "none", lambda _: None)


def test_the_graph_answers_what_the_arrays_answer(training):
    of, trained = training
    family = trained.family
    matrix = of.test[0].samples.matrix
    scale = scaled(family, ArrayFunctions(), matrix)
    heads = np.mean([n.heads(scale.inputs) for n in trained.networks], axis=0)
    lower, upper = softplus(heads[..., 1]), softplus(heads[..., 2])
    kind = scale.apart[:, 0].astype(int)
    middle = heads[..., 0] + trained.calibration.shift * (lower + upper)
    bounds = (
        middle - lower * trained.calibration.lower[kind],
        middle,
        middle + upper * trained.calibration.upper,
    )
    z = np.stack(bounds, axis=-1)
    if family is DEMAND:
        z = np.exp(np.clip(z, -EXPONENT_LIMIT, EXPONENT_LIMIT))
    expected = scale.offset[..., None] + scale.unit[..., None] * z
    if family is DEMAND:
        expected = np.maximum(expected, 0)
    model = Model(exported(trained), family, view(family))
    size = np.abs(scale.unit[..., None])
    assert (np.abs(model.quantiles(matrix) - expected) / size).max() < 1e-4


def test_the_same_seed_gives_the_same_file(training):
    _, trained = training
    family = trained.family
    again = fitted(family, material(family), TINY, 1, "none", lambda _: None)
    assert exported(again) == exported(trained)
    other = fitted(family, material(family), TINY, 2, "none", lambda _: None)
    assert other.model_version != trained.model_version


def lesson(dice, rows=4000):
    inputs = dice.normal(size=(rows, 3))
    truth = (inputs[:, :1] + dice.normal(size=(rows, 1)) * (1 + (inputs[:, 1:2] > 0))) * np.ones(4)
    return Lesson(
        inputs, truth, np.ones((rows, 4)), np.zeros(rows, bool), (0.1, 0.5, 0.9), exponential=False
    )


def test_the_last_fit_learns_from_judged_days_of_sets_that_may_be_learned_from():
    samples = material(SNR).learn[0].samples
    early = samples.issued_ns < START + DAY_NS
    learn, test = (Part("one", samples.where(of), 1.0) for of in (early, ~early))
    unlearned = Part("licence forbids", samples, 1.0)
    found = Material([learn, Part("one, varied", samples, 1.0)], [test], [test, unlearned])
    last = found.with_judged_days()
    assert [len(part.samples) for part in last.learn] == [len(samples)] * 2
    assert set(last.learn[0].samples.issued_ns) == set(samples.issued_ns)
    assert (last.calibrate, last.test) == (found.calibrate, found.test)


def test_a_network_learns_the_quantiles_of_what_it_sees():
    dice = np.random.default_rng(3)
    seen = lesson(dice)
    network = train(seen, Recipe(width=16, epochs=100, batch=256), 0)
    other = lesson(dice)
    quantiles = spread_out(network.heads(other.inputs))
    # Standard normal quantiles at 0.1 and 0.9 are -1.28 and 1.28; the deviation is 1 or 2.
    deviation = 1 + (other.inputs[:, 1] > 0)
    assert np.abs(quantiles[:, 0, 1] - other.inputs[:, 0]).mean() < 0.25
    width = quantiles[:, 0, 2] - quantiles[:, 0, 0]
    for size in (1, 2):
        assert np.median(width[deviation == size]) == pytest.approx(2 * 1.28 * size, rel=0.15)


def test_calibration_gives_bands_that_hold_what_they_say():
    dice = np.random.default_rng(4)
    heads = np.zeros((9000, 4, 3), np.float32)
    apart = np.arange(9000) % 3 == 0
    truth = dice.normal(size=(9000, 4)) * np.where(apart, 1.0, 0.5)[:, None]
    found = calibrate(heads, truth, np.ones(9000), apart, (0.1, 0.5, 0.9))
    gap = np.log(2)
    middle = found.shift * 2 * gap
    assert [(truth <= bound).mean() for bound in (middle, middle + found.upper * gap)] == (
        pytest.approx([0.5, 0.9], abs=0.01)
    )
    for kind, y in enumerate((truth[~apart], truth[apart])):
        assert (y <= middle - found.lower[kind] * gap).mean() == pytest.approx(0.1, abs=0.01)


def test_truths_at_the_least_that_can_be_said_draw_the_lower_bound_there():
    dice = np.random.default_rng(5)
    truth = np.maximum(dice.normal(size=(9000, 4)), -0.5)  # 31 % of them
    arguments = np.zeros((9000, 4, 3)), truth, np.ones(9000), np.zeros(9000, bool), (0.1, 0.5, 0.9)
    usual, floored = calibrate(*arguments), calibrate(*arguments, -0.5)
    assert usual.lower[0] * np.log(2) == pytest.approx(0.5 + usual.shift * 2 * np.log(2), abs=0.01)
    assert (floored.lower[0] > 2 * usual.lower[0]).all()
    assert np.isfinite(floored.lower).all()


def test_a_few_samples_are_not_calibrated_apart():
    dice = np.random.default_rng(4)
    truth = dice.normal(size=(5000, 4))
    apart = np.arange(5000) < 10
    truth[apart] -= 100
    found = calibrate(np.zeros((5000, 4, 3)), truth, np.ones(5000), apart, (0.1, 0.5, 0.9))
    assert np.array_equal(found.lower[0] > 0.5, [True] * 4)
    assert (found.lower[1] < 2.0).all()


@pytest.mark.parametrize("family", FAMILIES.values())
def test_variants_know_nothing_of_later_periods(family):
    span = Span(START, START + 9 * DAY_NS)
    real = (moving_links if family is SNR else smooth_pools)(span, 3, 0)
    end = START + 8 * DAY_NS
    changed = [
        dataclasses.replace(
            rows,
            fields={n: np.where(rows.times_ns < end, v, v + 99) for n, v in rows.fields.items()},
        )
        for rows in real.values()
    ]
    first, second = (variants(family, rows, 12, end, 7) for rows in (list(real.values()), changed))
    for one, other in zip(first.values(), second.values(), strict=True):
        assert (one.times_ns < end).all()
        assert np.array_equal(one.fields[family.target], other.fields[family.target])


def test_variants_of_links_rise_as_often_as_they_fall():
    times = START + MINUTE_NS * np.arange(2000)
    fades = np.where(np.arange(2000) % 100 < 10, -8.0, 0.0)
    varied = variants(SNR, [Rows(times, {"snr_db": fades})], 200, times[-1], 7).values()
    swings = [values - np.median(values) for values in (rows.fields["snr_db"] for rows in varied)]
    rising = np.mean([np.abs(s).max() == s.max() for s in swings])
    assert 0.35 < rising < 0.65


def test_a_file_holds_what_was_calibrated(training):
    _, trained = training
    for network in trained.networks:
        for weights in network.weights.values():
            stored = weights.astype(np.float16) if weights.ndim > 1 else weights
            assert np.array_equal(stored, weights)
