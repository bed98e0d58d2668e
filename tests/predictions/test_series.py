"""States of pools in the service: kept for a day, and the same whoever fits them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from fleetcast.config.sections import Forecast
from fleetcast.engine import encode_records, format_time
from fleetcast.forecast.backtest import backtest
from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.rows import Rows
from fleetcast.forecast.series import starts
from fleetcast.forecast.serving import filling
from fleetcast.forecast.serving.releases import Releases
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.sweeping import Sweeping
from tests.forecast.test_model import changed_model

from .serving import MINUTE_NS, START_NS, answer, serving

WINDOW_NS = 15 * MINUTE_NS
DAY_NS = 96 * WINDOW_NS
DAYS = 24
POOLS = ("calm", "wild")


def value(name, step):
    if name == "wild" and step % 37 == 0:
        return 4e9
    return round(1e9 * (2 + math.sin(step / 96 * 2 * math.pi) + 0.02 * math.sin(step * 1.7)), 1)


@pytest.fixture(scope="module")
def rows():
    last = START_NS // WINDOW_NS
    times = np.arange(last - DAYS * 96, last) * WINDOW_NS
    return {
        name: Rows(times, {"offered_bytes": np.array([value(name, t // WINDOW_NS) for t in times])})
        for name in POOLS
    }


@pytest.fixture
def pools(plane, rows):
    records = [
        {
            "measurement": "pool_interval",
            "time": format_time(int(time_ns)),
            "tags": {"entity_id": name},
            "fields": {"offered_bytes": float(offered)},
        }
        for name, one in rows.items()
        for time_ns, offered in zip(one.times_ns, one.fields["offered_bytes"], strict=True)
    ]
    for first in range(0, len(records), 1000):
        plane.write_json(encode_records(records[first : first + 1000]), now_ns=START_NS)
    return plane


@pytest.fixture
def demand(store, clock):
    releases = Releases(store, clock)
    releases.promote("demand")
    return releases


def asked(store, releases, plane, *names):
    """Quantiles by pool and horizon, newly computed."""
    settings = Forecast(fresh_seconds=1)
    releases.clock.advance(2_000_000_000)
    predictions = serving(store, releases, lambda: settings)
    document = answer(predictions, plane, *names, family="demand")
    assert not document["entity_errors"]
    return {
        (item["link_id"], item["horizon_minutes"]): list(item["value"].values())
        for item in document["items"]
    }


def states(store):
    with store.read() as records:
        return dict(records.under("series", b""))


def test_the_backtest_answers_as_the_service_does(store, demand, pools, rows):
    served = asked(store, demand, pools, *POOLS)
    issued = np.array([START_NS // WINDOW_NS * WINDOW_NS])
    result = backtest(Forecaster(DEMAND), rows, issued, lambda _: None)
    tested = {
        (row["entity_id"], row["horizon_minutes"]): [row["p10"], row["p50"], row["p99"]]
        for row in result.answers.iter_rows(named=True)
    }
    assert served == tested
    days = np.array([starts(name, issued) for name in rows])
    alone = Forecaster(DEMAND).learned(list(rows.values()), days)
    assert alone["weight"][0].max() > 0, "the answer is a mixture"


def test_a_state_is_fitted_once_a_day_and_again_when_it_is_lost(store, demand, pools):
    first = asked(store, demand, pools, "calm")
    kept = states(store)
    assert len(kept) == 1
    assert all(len(record) < 4000 for record in kept.values())
    assert asked(store, demand, pools, "calm") == first
    assert states(store) == kept
    with store.write() as records:
        for key in kept:
            records.delete("series", key)
    assert asked(store, demand, pools, "wild", "calm").items() >= first.items()
    assert len(states(store)) == 2


def test_states_of_an_earlier_day_end(store, demand, pools, clock):
    asked(store, demand, pools, *POOLS)
    clock.advance(DAY_NS)
    sweeping = Sweeping(store, clock, Forecast)
    while sweeping.sweep():
        pass
    assert states(store) == {}


def test_each_model_has_states_of_its_own(store, demand, pools, tmp_path):
    (tmp_path / "other.onnx").write_bytes(changed_model(DEMAND, {"model_version": "demand-other"}))
    demand.promote("demand", tmp_path / "other.onnx", Role.SHADOW)
    asked(store, demand, pools, "calm")
    assert len(states(store)) == 2


def test_a_request_has_so_many_states_fitted_and_the_next_one_goes_on(
    store, demand, pools, monkeypatch
):
    monkeypatch.setattr(filling, "FITS_MAX", 1)
    settings = Forecast()
    predictions = serving(store, demand, lambda: settings)
    document = answer(predictions, pools, *POOLS, family="demand")
    (error,) = document["entity_errors"]
    assert (error["entity_id"], error["code"]) == ("wild", "prediction_unavailable")
    assert not answer(predictions, pools, *POOLS, family="demand")["entity_errors"]


def test_states_that_nobody_can_read_are_a_failure_of_the_batch(store, demand, pools):
    asked(store, demand, pools, "calm")
    with store.write() as records:
        for key, record in states(store).items():
            records.keep("series", key, record[:-1] + bytes([record[-1] ^ 1]))
    demand.clock.advance(301_000_000_000)
    document = answer(serving(store, demand, Forecast), pools, "calm", family="demand")
    assert document["entity_errors"][0]["code"] == "prediction_unavailable"


def test_answers_of_the_backtest_are_a_row_of_finite_numbers(rows):
    issued = START_NS - DAY_NS * np.arange(3)[::-1]
    result = backtest(Forecaster(DEMAND), rows, issued, lambda _: None)
    assert result.answers.filter(pl.col("p99").is_null()).is_empty()
