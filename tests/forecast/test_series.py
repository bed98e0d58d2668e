"""Each pool's own linear model, and its part in the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.forecast import series
from fleetcast.forecast.baselines import baselines
from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.features import features, observed
from fleetcast.forecast.rows import Rows
from fleetcast.forecast.scores import pinball
from fleetcast.forecast.series.learning import Histories, learned
from fleetcast.forecast.training.sets import Span
from fleetcast.forecast.training.simulated import bursty_pools

from .conftest import DAY, NOON, WINDOW

MIDNIGHT = NOON - DAY // 2
A_DAY = 96
WINDOWS = 28 * A_DAY
STEPS = [horizon // 15 for horizon in DEMAND.horizons_minutes]


def network(days, seed=1, noise=0.01, start=MIDNIGHT):
    """The total of a network: days, a quieter weekend, slow drift; `days` up to `start`."""
    dice = np.random.default_rng(seed)
    step = np.arange(-days * A_DAY, A_DAY * 2)
    day = np.sin(step / A_DAY * 2 * np.pi) + 0.4 * np.sin(step / A_DAY * 4 * np.pi + 1)
    weekend = 0.3 * (step // A_DAY % 7 >= 5)
    drift = np.cumsum(dice.normal(size=len(step))) * 0.004
    values = 1e9 * np.exp(0.5 * day - weekend + drift + noise * dice.normal(size=len(step)))
    return Rows(start + step * WINDOW, {"offered_bytes": values})


def bursty(days, seed=2):
    """A pool of few servers: idle but for bursts out of nothing."""
    dice = np.random.default_rng(seed)
    step = np.arange(-days * A_DAY, A_DAY)
    values = 1e3 * dice.lognormal(sigma=0.3, size=len(step))
    values[dice.uniform(size=len(step)) < 0.02] *= 1e4
    return Rows(MIDNIGHT + step * WINDOW, {"offered_bytes": values})


def since(rows, time_ns):
    """The rows from an instant on."""
    keep = rows.times_ns >= time_ns
    return Rows(rows.times_ns[keep], {"offered_bytes": rows.fields["offered_bytes"][keep]})


def answers(forecaster, entities, issued_ns=(NOON,)):
    """Quantiles with and without the pools' own models, and their weights [entities, horizons]."""
    issued = np.array(issued_ns)
    taken = features(DEMAND, entities, issued)
    days = np.tile(96 * np.unique(issued // DAY), (len(entities), 1))
    states = forecaster.learned(entities, days)
    mixed, alone = forecaster.predict(taken, states), forecaster.predict(taken)
    return mixed.quantiles, alone.quantiles, states["weight"]


def test_a_smooth_series_is_left_to_its_own_model_and_answered_better(forecasters):
    rows, forecaster = network(40), forecasters["demand"]
    issued = MIDNIGHT + np.arange(-6 * A_DAY, A_DAY, 4) * WINDOW
    mixed, alone, weight = answers(forecaster, [rows], issued)
    assert weight.mean() >= 0.8
    truth = observed(DEMAND, rows, issued)
    last = baselines(DEMAND, rows, issued).last_value
    ours, theirs, simple = (
        pinball(truth, quantiles, DEMAND.quantiles).mean((0, 2))
        for quantiles in (mixed[0], alone[0], last)
    )
    assert (ours < 0.8 * theirs).all()
    assert (ours < 0.8 * simple).all()


def test_pools_of_few_servers_stay_with_the_model_for_all_for_the_most_part(forecasters):
    pools = [*bursty_pools(Span(MIDNIGHT - 40 * DAY, MIDNIGHT + 2 * DAY), 12, 4).values()]
    issued = MIDNIGHT + np.arange(0, A_DAY, 4) * WINDOW
    mixed, alone, weight = answers(forecasters["demand"], pools, issued)
    assert weight.mean() <= 0.5
    losses = np.zeros((2, len(pools)))
    for index, rows in enumerate(pools):
        truth = observed(DEMAND, rows, issued)
        for who, quantiles in enumerate((mixed[index], alone[index])):
            losses[who, index] = pinball(truth, quantiles, DEMAND.quantiles).mean()
    assert (losses[0] / losses[1]).mean() < 1.02


def test_with_seven_days_of_history_the_answer_is_that_of_the_model_for_all(forecasters):
    rows = since(network(40), NOON - 7 * DAY)
    mixed, alone, weight = answers(forecasters["demand"], [rows])
    assert (weight == 0).all()
    assert np.array_equal(mixed, alone)
    assert np.isfinite(mixed).all()


@pytest.mark.parametrize("days", [9, 11, 13, 14, 16])
def test_a_pool_in_its_first_weeks_gets_a_small_share_and_none_a_day_ahead(days, forecasters):
    rows = since(network(40), MIDNIGHT - days * DAY)
    mixed, alone, weight = answers(forecasters["demand"], [rows])
    *sooner, day_ahead = weight[0, 0]
    assert all(0 < share <= (days - 6) / 8 for share in sooner)
    assert (day_ahead > 0) == (days >= 14)
    assert np.array_equal(mixed[..., -1, :], alone[..., -1, :]) == (days < 14)


def test_rows_from_the_issue_time_on_change_nothing(forecasters):
    rows, dice = network(40), np.random.default_rng(3)
    values = rows.fields["offered_bytes"].copy()
    later = rows.times_ns >= NOON
    values[later] *= dice.lognormal(sigma=3, size=later.sum())
    changed = Rows(rows.times_ns, {"offered_bytes": values})
    cut = rows.before(NOON)
    first, _, weight = answers(forecasters["demand"], [rows])
    assert weight.min() > 0
    for other in (changed, cut):
        assert np.array_equal(answers(forecasters["demand"], [other])[0], first)


def test_rows_of_the_day_itself_change_no_state(forecasters):
    rows, day = network(40), np.array([[NOON // DAY * 96]])
    (whole,) = forecasters["demand"].learned([rows], day)
    (cut,) = forecasters["demand"].learned([rows.before(MIDNIGHT)], day)
    assert whole.tobytes() == cut.tobytes()


def test_days_of_pools_begin_at_all_times_of_the_day_and_contain_the_issue_time():
    issued = NOON // WINDOW
    begun = [int(series.starts(f"pool-{number}", np.array([NOON]))[0]) for number in range(2000)]
    assert sorted({issued - start for start in begun}) == list(range(96))
    two_days = series.starts("pool-1", np.array([NOON - DAY, NOON, NOON + WINDOW]))
    assert two_days.tolist() == [begun[1] - 96, begun[1]]


def test_states_of_many_days_are_those_of_each_day(forecasters):
    days = 96 * (NOON // DAY - np.arange(70)[::-1])[None]
    rows = [network(60)]
    many = forecasters["demand"].learned(rows, days)
    for place in (0, 63, 64, 69):
        one = forecasters["demand"].learned(rows, days[:, place : place + 1])
        assert one[0, 0].tobytes() == many[0, place].tobytes()


def test_a_pool_is_answered_alone_as_among_others_and_at_other_issue_times(forecasters):
    pools = [network(40), bursty(40), network(22, seed=5), since(network(40), NOON - 7 * DAY)]
    issued = MIDNIGHT + np.arange(-2 * A_DAY, A_DAY, 7) * WINDOW
    together, _, weights = answers(forecasters["demand"], pools, issued)
    assert weights.max() > 0
    for index, rows in enumerate(pools):
        for place in (0, 17, len(issued) - 1):
            alone, _, _ = answers(forecasters["demand"], [rows], issued[place : place + 1])
            assert np.array_equal(alone[0, 0], together[index, place], equal_nan=True)


def gaps(rows, seed=7):
    dice = np.random.default_rng(seed)
    keep = dice.uniform(size=len(rows.times_ns)) >= 0.005
    keep[500:520] = False
    return Rows(rows.times_ns[keep], {"offered_bytes": rows.fields["offered_bytes"][keep]})


def flat(level):
    rows = network(40)
    return Rows(rows.times_ns, {"offered_bytes": np.full(len(rows.times_ns), level)})


def doubling():
    """Ten times as much each day: what carried its trend on would explode."""
    rows = network(40)
    growth = 10.0 ** np.clip((rows.times_ns - MIDNIGHT) / DAY + 10, 0, 10)
    return Rows(rows.times_ns, {"offered_bytes": rows.fields["offered_bytes"] * growth})


ODD = {
    "seven days and a bit": since(network(40), NOON - 10 * DAY),
    "two weeks": since(network(40), NOON - 14 * DAY),
    "bursts": bursty(40),
    "constant": flat(1e6),
    "nothing": flat(0.0),
    "huge": flat(1e300),
    "tiny": flat(1e-3),
    "gaps": gaps(network(40)),
    "doubling": doubling(),
}


@pytest.mark.parametrize("name", ODD)
def test_no_answer_explodes(name, forecasters):
    rows = ODD[name]
    issued = MIDNIGHT + np.arange(0, A_DAY, 5) * WINDOW
    mixed, alone, _ = answers(forecasters["demand"], [rows], issued)
    answered = np.isfinite(alone).all((-1, -2))
    assert np.isfinite(mixed[answered]).all()
    assert (np.diff(mixed[answered], axis=-1) >= 0).all()
    assert (mixed[answered] >= 0).all()
    seen = rows.before(NOON).fields["offered_bytes"].max()
    limit = np.maximum(alone[answered], np.e * seen * (1 + 1e-6))
    assert (mixed[answered] <= limit).all()


def test_a_state_is_small_and_comes_back_as_it_was(forecasters):
    states = forecasters["demand"].learned([network(40)], np.array([[NOON // DAY * 96]]))
    record = series.encoded(states[0, 0])
    assert len(record) <= 4000
    assert series.decoded([record, record])[1].tobytes() == states[0].tobytes()
    with pytest.raises(ValueError, match="buffer"):
        series.decoded([record[:-1]])


def plain(offered, steps):
    """Ridge regression of one horizon by the book: coefficients, constant last, window by window.

    Rows are issue times `n`; a window that is not there is the newest of at most four before it.
    """
    level = float(np.float32(np.nanmean(offered)))
    filled = offered.copy()
    for n in range(len(offered)):
        back = [k for k in range(min(n, 4) + 1) if not np.isnan(offered[n - k])]
        filled[n] = offered[n - back[0]] if back else np.nan
    logs = np.log(filled + 0.01 * level)

    def at(index):
        return logs[index] if 0 <= index < len(logs) else np.nan

    def either(*indexes):
        return next((at(i) for i in indexes if not np.isnan(at(i))), np.nan)

    rows, changes = [], []
    for n in range(1, len(offered) - steps + 1):
        t, last = n + steps - 1, at(n - 1)
        day, yesterday = at(t - 96), at(n - 97)
        later = t - 95 if steps < 96 else t - 97
        known = [v for v in (at(n - k) for k in range(1, 97, 12)) if not np.isnan(v)]
        inputs = [
            at(n - 2),
            at(n - 3),
            sum(at(n - k) for k in range(4, 9)) / 5,
            yesterday,
            (at(n - 98) + at(n - 99)) / 2,
            either(n - 673, n - 97),
            either(n - 1345, n - 673, n - 97),
            np.mean(known) if known else np.nan,
            day,
            either(t - 192, t - 96),
            (at(t - 97) + at(later)) / 2,
            either(t - 672, t - 96),
            (either(t - 671, t - 96) + either(t - 673, t - 96)) / 2,
            either(t - 768, t - 192, t - 96),
            either(t - 1344, t - 672, t - 96),
        ]
        row = [x - last for x in inputs]
        change = np.log(offered[t] + 0.01 * level) - last
        if np.isfinite(row).all() and np.isfinite(change):
            rows.append(row)
            changes.append(change)
    x, z = np.array(rows), np.array(changes)
    z = np.clip(z, *np.quantile(z, (0.005, 0.995)))
    penalties = np.append(0.01 * x.var(0), 0) + 1e-6
    heavy = np.diag(np.sqrt(penalties * len(z)))
    design = np.vstack([np.column_stack([x, np.ones(len(x))]), heavy])
    found = np.linalg.lstsq(design, np.append(z, np.zeros(16)), rcond=None)[0]
    return found, x, z


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([10, 16, 28]), st.sampled_from([0.0, 0.02]))
def test_the_model_is_ridge_regression_of_its_inputs(seed, days, missing):
    dice = np.random.default_rng(seed)
    offered = np.full(WINDOWS, np.nan)
    values = network(30, seed, noise=0.05).fields["offered_bytes"][: days * A_DAY]
    offered[-days * A_DAY :] = np.where(dice.uniform(size=len(values)) < missing, np.nan, values)
    answers = np.full((1, 122, 4, 3), np.nan)
    (state,) = learned(Histories(np.array([20_000 * 96]), offered[None], answers))
    assert (state["weight"] == 0).all()  # there is nothing to weigh it by
    for h in (0, 3):
        wanted, inputs, changes = plain(offered, STEPS[h])
        got = state["coefficients"][h].astype(float)
        said = np.column_stack([inputs, np.ones(len(inputs))])
        assert np.abs(said @ got - said @ wanted).max() < 1e-3 * np.abs(changes).max()
