"""A link whose values come in steps is answered with levels that it stood on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import features
from fleetcast.forecast.levels import HOUR, on_levels
from fleetcast.forecast.rows import Rows

from .conftest import MINUTE, NOON, link


def stepped(step=0.3, minutes=3000, seed=1):
    """A link that stays at a level for some minutes, then goes to another."""
    dice = np.random.default_rng(seed)
    at = np.repeat(dice.integers(-1, 2, minutes), dice.integers(1, 9, minutes))[:minutes]
    times = NOON + (np.arange(minutes) - minutes + 60) * MINUTE
    return Rows(times, {"snr_db": 40.1 + step * at})


def answered(forecaster, rows, issued_ns):
    return forecaster.predict(features(SNR, [rows], issued_ns)).quantiles[0]


def raw(forecaster, rows, issued_ns):
    """The network's answers as they are."""
    return forecaster._model.quantiles(features(SNR, [rows], issued_ns).matrix[0])


ISSUED = NOON - MINUTE * np.arange(0, 1000, 50)[::-1]


def test_answers_for_a_link_that_comes_in_steps_are_levels_as_they_came(forecasters):
    rows = stepped()
    for issued_ns, own in zip(ISSUED, answered(forecasters["snr"], rows, ISSUED), strict=True):
        hour = rows.times_ns >= issued_ns - HOUR * MINUTE
        seen = rows.fields["snr_db"][hour & (rows.times_ns < issued_ns)]
        assert np.isin(own, seen).all()  # to the last bit: nothing is rounded
    assert not np.isin(raw(forecasters["snr"], rows, ISSUED), rows.fields["snr_db"]).any()


def test_links_without_steps_and_links_in_fine_steps_keep_their_answers(forecasters):
    for rows in (link(range(-3000, 60)), stepped(0.03)):
        quantiles = answered(forecasters["snr"], rows, ISSUED)
        assert np.array_equal(quantiles, raw(forecasters["snr"], rows, ISSUED))


def test_rows_from_the_issue_time_on_and_older_levels_change_nothing(forecasters):
    rows, dice = stepped(), np.random.default_rng(2)
    first = answered(forecasters["snr"], rows, ISSUED[-1:])
    later = rows.times_ns >= NOON
    values = rows.fields["snr_db"] + np.where(later, dice.normal(size=len(later)), 0)
    for other in (rows.before(NOON), Rows(rows.times_ns, {"snr_db": values})):
        assert np.array_equal(answered(forecasters["snr"], other, ISSUED[-1:]), first)
    assert np.array_equal(answered(forecasters["snr"], rows, ISSUED)[-1:], first)


def hour(values):
    """The values as the last of an hour, with minutes missing before."""
    return np.array([[np.nan] * (HOUR - len(values)) + list(values)])


def moved(quantiles, values):
    return on_levels(np.array([[quantiles]]), hour(values))[0, 0].tolist()


def test_a_quantile_goes_up_from_four_tenths_of_the_way():
    assert moved([10.39, 10.41, 11.9], [10.0, 11.0, 12.0] * 5) == [10.0, 11.0, 12.0]


def test_a_quantile_far_beyond_all_levels_stays():
    assert moved([7.9, 8.1, 13.1], [10.0, 11.0] * 5) == [7.9, 10.0, 13.1]


def test_values_that_lie_apart_by_chance_are_no_levels():
    values = [10.0, 10.5, 11.1, 11.9, 12.4, 13.0, 13.6, 14.1, 14.9, 15.5]
    assert moved([10.2, 11.3, 12.7], values) == [10.2, 11.3, 12.7]
    assert moved([10.2, 11.3, 12.7], [10.0] * 10) == [10.2, 11.3, 12.7]
    assert moved([10.2, 11.3, 12.7], []) == [10.2, 11.3, 12.7]


def test_a_level_computed_in_two_ways_is_one_level():
    again = -45.6 - 20.1, -45.7 - 20.0, -65.4
    assert moved([-65.69, -65.66, -65.45], again * 5)[2] == -65.4
    assert np.allclose(moved([-65.69, -65.66, -65.45], again * 5)[:2], -65.7)


LEVELS_DB = st.floats(-1e3, 1e3)


@given(
    st.lists(st.lists(LEVELS_DB, min_size=3, max_size=3).map(sorted), min_size=1, max_size=4),
    st.lists(st.one_of(LEVELS_DB, st.sampled_from([0.0, 0.3, 0.6])), max_size=HOUR),
)
def test_quantiles_never_cross_and_each_is_its_own_or_a_level(quantiles, values):  # I12
    own = np.array([quantiles])
    answer = on_levels(own, hour(values))
    assert (np.diff(answer, axis=-1) >= 0).all()
    assert ((answer == own) | np.isin(answer, values)).all()


def test_answers_that_are_no_numbers_stay_so():
    answer = on_levels(np.array([[[np.nan, 10.2, np.inf]]]), hour([10.0, 11.0] * 5))
    assert np.array_equal(answer, [[[np.nan, 10.0, np.inf]]], equal_nan=True)
