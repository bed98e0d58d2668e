"""Models of raw values, which others export: canary or shadow, never primary."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fleetcast.errors import OperatorError
from fleetcast.forecast.backtest import backtest
from fleetcast.forecast.families import DEMAND, FAMILIES, SNR
from fleetcast.forecast.features import features, view
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.onnx import Model
from fleetcast.forecast.rows import Rows
from fleetcast.forecast.serving.releases import Releases
from fleetcast.forecast.serving.rollouts import Role
from tests.predictions.conftest import clock, store  # noqa: F401 - fixtures of serving

from .conftest import MINUTE, NOON, link, pool


def exported(family, steps, offsets=(1.0, -1.0, 0.0), kind=TensorProto.FLOAT, **metadata):
    """A file that says the oldest value of its context plus these offsets, at every horizon."""
    horizons = len(family.horizons_minutes)
    array = np.float32 if kind == TensorProto.FLOAT else np.float64
    constants = [
        numpy_helper.from_array(np.zeros(1, np.int64), "first"),
        numpy_helper.from_array(np.array(1, np.int64), "axis"),
        numpy_helper.from_array(np.tile(np.array(offsets, array), (horizons, 1)), "offsets"),
    ]
    nodes = [
        helper.make_node("Gather", ["context", "first"], ["oldest"], axis=1),
        helper.make_node("Unsqueeze", ["oldest", "axis"], ["level"]),
        helper.make_node("Add", ["level", "offsets"], ["quantiles"]),
    ]
    graph = helper.make_graph(
        nodes,
        "oldest",
        [helper.make_tensor_value_info("context", kind, ["rows", steps])],
        [helper.make_tensor_value_info("quantiles", kind, ["rows", horizons, 3])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    said = {
        "family": family.name,
        "model_version": "oldest-1",
        "context": str(steps),
        "horizons_minutes": json.dumps(family.horizons_minutes),
        "quantiles": json.dumps(family.quantiles),
        "training_data": "none",
    }
    helper.set_model_props(model, said | metadata)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def forecaster(family, steps, **options):
    return Forecaster(family, Model(exported(family, steps, **options), family, view(family)))


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_the_context_is_the_means_of_the_last_minutes_and_answers_are_put_in_order(kind):
    rows = link(range(-100, 0))
    found = forecaster(SNR, 20, kind=kind).predict(features(SNR, [rows], np.array([NOON])))
    oldest = rows.fields["snr_db"][-20]
    assert np.allclose(found.quantiles[0, 0], oldest + np.array([-1.0, 0.0, 1.0]), atol=1e-5)


def test_the_context_of_a_pool_is_its_windows_and_no_answer_is_negative():
    rows = pool(range(-700, 0), scale=0.1)
    found = forecaster(DEMAND, 672).predict(features(DEMAND, [rows], np.array([NOON])))
    oldest = rows.fields["offered_bytes"][-672]
    assert np.allclose(found.quantiles[0, 0, 0], [0.0, oldest, oldest + 1], atol=1e-6)


def test_minutes_without_a_sample_are_nan():
    rows = link([*range(-100, -20), *range(-19, 0)])
    found = forecaster(SNR, 20).predict(features(SNR, [rows], np.array([NOON])))
    assert found.errors[0, 0] == "prediction_unavailable"


def test_a_pool_is_not_mixed_and_the_backtest_takes_it_too():
    rows = pool(range(-3000, 10))
    one = forecaster(DEMAND, 4)
    assert not one.is_mixed
    result = backtest(one, {"a": rows}, np.array([NOON]), lambda _: None)
    assert np.isclose(result.answers["p50"][0], rows.fields["offered_bytes"][-14], rtol=1e-6)


def test_rows_after_the_issue_time_and_other_entities_change_nothing():
    rows, dice = link(range(-2000, 60)), np.random.default_rng(1)
    later = rows.times_ns >= NOON
    changed = rows.fields["snr_db"].copy()
    changed[later] += dice.normal(size=later.sum()) * 9
    issued = NOON - MINUTE * np.arange(100)[::-1]
    one = forecaster(SNR, 1440)
    first = one.predict(features(SNR, [rows], issued)).quantiles[0]
    others = [Rows(rows.times_ns, {"snr_db": changed}), link(range(-90, 0), level=3.0)]
    second = one.predict(features(SNR, others, issued)).quantiles[0]
    assert np.array_equal(first, second, equal_nan=True)


@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize("steps", [0, 100_000])
def test_a_context_that_nobody_has_is_refused(family, steps):
    with pytest.raises(OperatorError, match="its context of"):
        Model(exported(family, 3, context=str(steps)), family, view(family))


def test_it_is_canary_or_shadow_and_never_primary(store, clock, tmp_path):  # noqa: F811 - fixtures of serving
    releases = Releases(store, clock)
    path = tmp_path / "oldest.onnx"
    path.write_bytes(exported(SNR, 20))
    releases.promote("snr")
    with pytest.raises(OperatorError, match="canary or shadow"):
        releases.promote("snr", path)
    assert releases.promote("snr", path, Role.CANARY, 100).canary.model_version == "oldest-1"
    assert releases.promote("snr", path, Role.SHADOW).shadow.model_version == "oldest-1"
