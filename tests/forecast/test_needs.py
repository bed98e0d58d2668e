"""Which entities get an answer, and which an entity error: I9, I10, I14."""

import numpy as np
import pytest

from fleetcast.config import sections
from fleetcast.forecast.families import DEMAND, FAMILIES, SNR
from fleetcast.forecast.features import features, observed
from fleetcast.forecast.rows import NO_ROWS, Rows

from .conftest import MINUTE, NOON, WINDOW, link, pool


def code(family, rows, issued=NOON):
    return features(family, [rows], np.array([issued])).errors[0, 0]


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (range(-10, 0), None),
        (range(-15, -5), "insufficient_telemetry"),  # ten, the newest more than 5 minutes old
        ([*range(-15, -6), -5], None),  # ten distinct minutes, the newest less than 5 old
        (range(-15, -6), "insufficient_telemetry"),
        (range(-9, 0), "insufficient_telemetry"),  # nine
        ([*range(-9, 0), -9, -8, -7], "insufficient_telemetry"),  # twelve samples, nine minutes
        ([-15], "insufficient_telemetry"),
        ([-16], "no_telemetry"),
        (range(5), "no_telemetry"),  # only later rows
    ],
)
def test_snr_needs_ten_distinct_minutes_of_fifteen_the_newest_not_older_than_five(
    minutes, expected
):
    assert code(SNR, link(sorted(minutes))) == expected


@pytest.mark.parametrize("family", [SNR, DEMAND])
def test_an_entity_nobody_has_heard_of_has_no_telemetry(family):
    assert code(family, NO_ROWS) == "no_telemetry"


def test_a_row_at_the_issue_time_is_not_before_it():
    rows = link(range(-10, 0))
    late = Rows(np.append(rows.times_ns, NOON), {"snr_db": np.append(rows.fields["snr_db"], 99.0)})
    first, second = (features(SNR, [r], np.array([NOON])).matrix for r in (rows, late))
    assert np.array_equal(first, second, equal_nan=True)


def test_what_is_no_finite_number_is_no_sample():
    rows = link(range(-10, 0))
    rows.fields["snr_db"][3] = np.nan
    rows.fields["snr_db"][4] = np.inf
    assert code(SNR, rows) == "insufficient_telemetry"


def without(missing, per_window=1):
    windows = [w for w in range(-700, 0) if w not in missing]
    return pool(windows, per_window=per_window)


def test_demand_needs_666_of_the_672_windows():
    assert code(DEMAND, without(range(-106, -100))) is None
    assert code(DEMAND, without(range(-107, -100))) == "insufficient_telemetry"


def test_demand_looks_at_the_seven_days_before_only():
    assert code(DEMAND, pool(range(-672, 0))) is None
    assert code(DEMAND, pool(range(-672, 0)), NOON + 6 * WINDOW) is None
    assert code(DEMAND, pool(range(-672, 0)), NOON + 7 * WINDOW) == "insufficient_telemetry"
    assert code(DEMAND, pool([-672])) == "insufficient_telemetry"
    assert code(DEMAND, pool([-673])) == "no_telemetry"


def thinned(per_window, keep, windows):
    """A week of `per_window` intervals, of which `windows` windows hold only `keep`."""
    rows = pool(range(-700, 0), per_window=per_window)
    window = (rows.times_ns - NOON) // WINDOW
    rank = ((rows.times_ns - NOON) % WINDOW) // (WINDOW // per_window)
    chosen = ~((window >= -50) & (window < -50 + windows) & (rank >= keep))
    return Rows(rows.times_ns[chosen], {"offered_bytes": rows.fields["offered_bytes"][chosen]})


@pytest.mark.parametrize(("per_window", "keep"), [(3, 2), (15, 10)])
def test_two_thirds_of_the_intervals_make_a_window(per_window, keep):
    assert code(DEMAND, thinned(per_window, keep, 40)) is None
    assert code(DEMAND, thinned(per_window, keep - 1, 40)) == "insufficient_telemetry"


def test_a_window_with_two_thirds_is_scaled_up_to_the_whole():
    issued = np.array([NOON - 10 * WINDOW])
    full, part = (
        features(DEMAND, [rows], issued).matrix[0, 0]
        for rows in (pool(range(-700, 0), per_window=3), thinned(3, 2, 40))
    )
    assert np.allclose(part, full, rtol=0.02, atol=0.02)


def test_truth_needs_every_interval_of_its_window():
    issued = np.array([NOON - 50 * WINDOW])
    whole = observed(DEMAND, pool(range(-700, 0), per_window=3), issued)[0, 0]
    rows = thinned(3, 2, 1)  # the first window after the issue time
    assert whole > 0
    assert np.isnan(observed(DEMAND, rows, issued)[0, 0])
    assert observed(DEMAND, rows, issued + WINDOW)[0, 0] > 0


def test_an_interval_belongs_to_the_window_in_which_it_starts():
    times = NOON + np.arange(-2100, 1) * 5 * MINUTE - 7_000_000_000
    rows = Rows(times, {"offered_bytes": np.ones(len(times))})
    assert observed(DEMAND, rows, np.array([NOON - WINDOW]))[0, 0] == 3


def test_of_intervals_that_were_sent_twice_the_last_counts():
    rows = pool(range(-700, 4))
    again = Rows(
        np.repeat(rows.times_ns, 2),
        {"offered_bytes": np.repeat(rows.fields["offered_bytes"], 2) * np.tile([9, 1], 704)},
    )
    issued = np.array([NOON])
    one, two = (features(DEMAND, [r], issued).matrix for r in (rows, again))
    assert np.array_equal(one, two, equal_nan=True)
    assert observed(DEMAND, again, issued)[0, 0] == rows.fields["offered_bytes"][700]


def test_spacing_that_no_window_is_a_multiple_of():
    # Every 10 minutes: windows hold two intervals and one by turns, and none is missing.
    times = NOON + np.arange(-1100, 20) * 10 * MINUTE
    rows = Rows(times, {"offered_bytes": np.ones(len(times))})
    assert code(DEMAND, rows) is None
    assert observed(DEMAND, rows, np.array([NOON, NOON + WINDOW]))[:, 0].tolist() == [2, 1]


def test_snr_truth_is_the_mean_of_the_minute_that_ends_at_the_horizon():
    times = NOON + np.array([4 * MINUTE - 1, 4 * MINUTE, 5 * MINUTE - 1, 5 * MINUTE])
    rows = Rows(times, {"snr_db": np.array([99.0, -10.0, 0.0, 99.0])})
    assert observed(SNR, rows, np.array([NOON]))[0].tolist()[0] == -5


def test_spacing_is_inferred_from_rows_before_the_issue_time():
    quarter, minute = pool(range(-700, 0)), pool(range(96), per_window=15)
    both = Rows(
        np.concatenate([quarter.times_ns, minute.times_ns]),
        {"offered_bytes": np.concatenate([r.fields["offered_bytes"] for r in (quarter, minute)])},
    )
    issued = np.array([NOON])
    one, two = (features(DEMAND, [r], issued) for r in (quarter, both))
    assert np.array_equal(one.matrix, two.matrix, equal_nan=True)
    assert two.errors[0, 0] is None


def test_the_settings_name_the_families_that_there_are():
    assert tuple(FAMILIES) == sections.FAMILIES
