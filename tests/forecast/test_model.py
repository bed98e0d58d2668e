"""Models answer in order and in batches; those made for other input are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import fleetcast.forecast
from benches.forecast.judged import as_judged
from fleetcast.errors import OperatorError
from fleetcast.forecast.families import DEMAND, FAMILIES, SNR
from fleetcast.forecast.features import features, view
from fleetcast.forecast.onnx import Model, shipped
from fleetcast.forecast.rows import NO_ROWS, Rows

from .conftest import MINUTE, NOON, WINDOW, link, pool

CARDS = Path(fleetcast.forecast.__file__).parent / "models"


RUN = """
from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import view
from fleetcast.forecast.onnx import Model, shipped
Model(shipped(SNR), SNR, view(SNR))
"""


def test_models_are_run_without_reports_to_anybody(tmp_path):
    # ONNX Runtime keeps an identifier of the machine and a queue of reports in the user's home.
    # Under CI it reports nothing of its own accord.
    environment = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG"}}
    subprocess.run(
        [sys.executable, "-c", RUN],
        env={**environment, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("family", FAMILIES.values())
def test_what_ships_is_small_and_has_a_card(family, forecasters):
    assert len(shipped(family)) < 100_000
    card = (CARDS / f"{family.name}.md").read_text()
    meta = forecasters[family.name].metadata
    for fact in (meta.model_version, meta.feature_view_id, meta.training_data, meta.sha256):
        assert fact in card
    assert as_judged(family).metadata.model_version in card


def changed_model(family, metadata):
    """The model that ships with other metadata."""
    model = onnx.load_from_string(shipped(family))
    props = {prop.key: prop.value for prop in model.metadata_props} | metadata
    onnx.helper.set_model_props(model, {k: v for k, v in props.items() if v})
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"feature_view_id": "snr-0123456789abcdef"}, "feature view snr-0123456789abcdef, not"),
        ({"family": "demand"}, "family"),
        ({"horizons_minutes": "[5, 15]"}, "horizons"),
        ({"quantiles": json.dumps([0.1, 0.5, 0.99])}, "quantiles"),
        ({"model_version": ""}, "lack 'model_version'"),
    ],
)
def test_a_model_for_other_input_is_refused(metadata, said):
    with pytest.raises(OperatorError, match=said) as refusal:
        Model(changed_model(SNR, metadata), SNR, view(SNR))
    assert "\n" not in str(refusal.value)


def test_what_is_no_model_is_refused_in_our_words():
    for content in (shipped(SNR)[:-1000], b"", b"no model"):
        with pytest.raises(OperatorError, match=r"^not a model that can be loaded: ") as raised:
            Model(content, SNR, view(SNR))
        # ONNX Runtime begins its own with a name such as [ONNXRuntimeError] : 7 : INVALID_PROTOBUF.
        assert "ONNXRuntimeError" not in str(raised.value)


def answers(forecaster, *entities):
    """Quantiles [horizons, quantiles] and code of each entity."""
    forecasts = forecaster.predict(features(forecaster.family, entities, np.array([NOON])))
    return list(zip(forecasts.quantiles[:, 0], forecasts.errors[:, 0], strict=True))


@pytest.mark.parametrize("family", FAMILIES.values())
def test_quantiles_never_cross_and_demand_is_never_negative(family, forecasters):  # I12
    dice = np.random.default_rng(5)
    columns = len(view(family).features)
    matrix = dice.normal(size=(3000, columns)) * 10.0 ** dice.integers(-6, 9, size=(3000, 1))
    matrix[dice.uniform(size=matrix.shape) < 0.2] = np.nan
    if family is DEMAND:
        matrix = np.abs(matrix)
        matrix[:, 0] = np.abs(dice.normal(size=3000)) * 1e6
    else:
        matrix[:, 0] = dice.normal(size=3000) * 100
    quantiles = forecasters[family.name]._model.quantiles(matrix)
    answered = np.isfinite(quantiles).all((1, 2))
    assert answered.mean() > 0.9
    assert (np.diff(quantiles[answered], axis=-1) >= 0).all()
    if family is DEMAND:
        assert (quantiles[answered] >= 0).all()


def test_a_batch_answers_each_entity_as_it_would_alone(forecasters):
    links = [link(range(-k, 0), level=k) for k in range(11, 60)]
    together = answers(forecasters["snr"], *links, NO_ROWS)
    for index in (0, 20, 48):
        ((alone, _),) = answers(forecasters["snr"], links[index])
        assert np.array_equal(alone, together[index][0])
    quantiles, code = together[-1]
    assert code == "no_telemetry"
    assert np.isnan(quantiles).all()


@pytest.mark.parametrize("offset", [-354.0, 1e6])
def test_the_offset_of_a_level_is_kept(offset, forecasters):
    rows = link(range(-3000, 0))
    moved = Rows(rows.times_ns, {"snr_db": rows.fields["snr_db"] + offset})
    (first, _), (second, _) = answers(forecasters["snr"], rows, moved)
    assert np.allclose(second - offset, first, atol=1e-4)


@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_pools_of_any_size_are_answered_alike(factor, forecasters):
    (small, _), (large, _) = answers(
        forecasters["demand"], pool(range(-700, 0)), pool(range(-700, 0), scale=1e6 * factor)
    )
    assert np.allclose(large / factor, small, rtol=1e-3)


def test_an_idle_pool_is_answered(forecasters):
    ((idle, code),) = answers(forecasters["demand"], pool(range(-700, 0), scale=0.0))
    assert code is None
    assert (idle >= 0).all()
    assert idle.max() < 1


def test_numbers_too_large_to_reckon_with_are_no_forecast(forecasters):
    rows = link(range(-100, 0))
    huge = Rows(rows.times_ns, {"snr_db": rows.fields["snr_db"] * 1e300})
    ((_, code),) = answers(forecasters["snr"], huge)
    assert code == "prediction_unavailable"


def test_issue_times_are_rounded_down():
    assert SNR.issued(NOON + MINUTE - 1) == NOON
    assert DEMAND.issued(NOON + WINDOW - 1) == NOON
    assert DEMAND.issued(NOON + WINDOW) == NOON + WINDOW
