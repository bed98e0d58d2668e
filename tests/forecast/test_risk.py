"""Probabilities beyond a threshold, in `fleetcast forecast risk` and in the console's outlook."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.cli.main import run
from fleetcast.forecast.families import DEMAND, FAMILIES, SNR
from fleetcast.forecast.risk import below
from fleetcast.forecast.serving.hindsight import EntityOutlook

from .conftest import NOON, link
from .test_backtest import frame, text

BELOW_NORMAL = {-1.5: 0.067, -1.0: 0.159, -0.5: 0.309, 0.0: 0.5, 0.5: 0.691, 1.0: 0.841, 1.5: 0.933}
"""Probabilities of a normal distribution below so many standard deviations."""


@pytest.mark.parametrize("family", FAMILIES.values())
def test_the_probability_at_a_quantile_is_its_level(family):
    quantiles = np.array([2e6, 3e6, 7e6])
    for quantile, level in zip(quantiles, family.quantiles, strict=True):
        assert np.isclose(below(family, quantiles, quantile), level)


def test_probabilities_between_and_beyond_quantiles_are_near_the_distribution():
    quantiles = 12.0 + 2.0 * np.array([-1.2816, 0.0, 1.2816])
    for deviations, probability in BELOW_NORMAL.items():
        assert abs(below(SNR, quantiles, 12.0 + 2.0 * deviations) - probability) < 0.08


VALUES = st.floats(-1e12, 1e12)


@pytest.mark.parametrize("family", FAMILIES.values())
@given(quantiles=st.lists(VALUES, min_size=3, max_size=3).map(sorted), thresholds=st.lists(VALUES))
def test_a_higher_threshold_is_no_less_probable_to_be_missed(family, quantiles, thresholds):
    probabilities = [below(family, np.array(quantiles), one) for one in sorted(thresholds)]
    assert all(0 <= one <= 1 for one in probabilities)
    assert (np.diff(probabilities) >= -1e-12).all()


def test_demand_is_never_below_nothing_and_no_forecast_has_no_probability():
    assert below(DEMAND, np.array([0.0, 1.0, 5.0]), 0.0) == 0
    assert np.isnan(below(DEMAND, np.full(3, np.nan), 0.0))
    assert np.isnan(below(SNR, np.full((2, 3), np.nan), 9.0)).all()


def test_the_outlook_has_the_highest_probability_of_all_horizons():
    falling = EntityOutlook(family=SNR, quantiles=[[11.0, 12.0, 13.0], [4.0, 8.0, 12.0]])
    assert falling.probability_below(8.0) == pytest.approx(0.5)
    assert falling.probability_below(4.0) == pytest.approx(0.1)
    assert EntityOutlook(family=SNR, quantiles=[]).probability_below(8.0) is None


@pytest.fixture
def risk(tmp_path, capsys):
    """Runs the command; returns its document, or its complaint."""
    source = tmp_path / "links.parquet"
    frame(one=link(range(-3000, 0)), late=link(range(30, 60))).write_parquet(source)

    def risk(*options, status=0):
        line = ["forecast", "risk", "--family", "snr", "--input", str(source), "--at", text(NOON)]
        assert run([*line, *options]) == status
        out, err = capsys.readouterr()
        return err if status else out

    return risk


def test_each_entity_and_horizon_has_a_probability_or_an_error(risk):
    low, high = (json.loads(risk(side, "10.5", "--json")) for side in ("--below", "--above"))
    for one, other in zip(low["risks"][:4], high["risks"][:4], strict=True):
        assert one["entity_id"] == "one"
        assert math.isclose(one["probability"] + other["probability"], 1)
    assert [one["horizon_minutes"] for one in low["risks"]] == [5, 15, 30, 60] * 2
    assert {(one["probability"], one["error"]) for one in low["risks"][4:]} == {
        (None, "no_telemetry")
    }
    assert "no_telemetry" in risk("--below", "10.5")
    sure = json.loads(risk("--below", "1000", "--json"))["risks"][0]["probability"]
    assert sure > 0.999


@pytest.mark.parametrize("options", [[], ["--below", "1", "--above", "2"], ["--below", "nan"]])
def test_a_threshold_has_to_be_one_number(options, risk):
    assert "either --below or --above" in risk(*options, status=1)
