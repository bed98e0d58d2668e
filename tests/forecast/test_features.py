"""Features use rows before the issue time only, and each issue time stands alone."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import Plane, encode_records, format_time
from fleetcast.forecast.families import DEMAND, FAMILIES, SNR
from fleetcast.forecast.features import (
    Feature,
    FeatureView,
    features,
    observed,
    reduce,
    view,
)
from fleetcast.forecast.rows import NO_ROWS, Rows, rows_by_entity
from fleetcast.forecast.serving.inputs import (
    features_of,
    rows_before,
    truths_of,
)

from .conftest import DAY, MINUTE, NOON, WINDOW, link, pool


def history(family):
    if family is SNR:
        minutes = [m for m in range(-9 * 1440, 120) if m % 97 and not 300 < m % 2000 < 330]
        rows = link(minutes, level=-354.0)
        elevation = 40 + np.arange(len(minutes)) / 400
        fields = {"elevation_deg": elevation, "azimuth_deg": elevation * 3}
        return Rows(rows.times_ns, {**rows.fields, **fields})
    return pool([w for w in range(-900, 120) if w % 331])


@pytest.mark.parametrize("family", FAMILIES.values())
def test_later_rows_and_other_issue_times_change_nothing(family):
    rows = history(family)
    issued = NOON + np.arange(-40, 8) * 2 * family.step_ns
    together = features(family, [NO_ROWS, rows], issued)
    for index in (0, 17, 47):
        alone = features(family, [rows.before(int(issued[index]))], issued[index : index + 1])
        assert np.array_equal(alone.matrix[0, 0], together.matrix[1, index], equal_nan=True)
        assert alone.errors[0, 0] == together.errors[1, index]


@pytest.mark.parametrize("family", FAMILIES.values())
def test_rows_before_the_history_of_a_family_are_not_needed(family):
    rows = history(family)
    since = NOON - (family.history_minutes + 10) * MINUTE
    kept = rows.times_ns >= since
    assert not kept.all()
    late = Rows(rows.times_ns[kept], {name: v[kept] for name, v in rows.fields.items()})
    first, second = (features(family, [r], np.array([NOON])) for r in (rows, late))
    assert np.array_equal(first.matrix, second.matrix, equal_nan=True)
    assert first.errors.tolist() == second.errors.tolist() == [[None]]


@given(
    st.lists(st.one_of(st.none(), st.floats(-50, 50)), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
)
def test_reductions_agree_with_numpy_on_what_is_there(values, levels):
    row = np.array([[np.nan if v is None else v for v in values]])
    there = row[~np.isnan(row)]
    got = reduce.quantiles(row, levels)[0]
    if not len(there):
        assert np.isnan(got).all()
        assert np.isnan(reduce.mean(row)).all()
        return
    assert np.allclose(got, np.quantile(there, levels))
    assert np.allclose(reduce.mean(row), there.mean())
    assert np.allclose(reduce.spread(row), there.std())


def line_of(fields, minutes=range(-1600, 0)):
    """Features at noon, by name, of a link with a row in each of these minutes."""
    rows = Rows(NOON + np.asarray(minutes) * MINUTE, fields)
    found = features(SNR, [rows], np.array([NOON])).matrix[0, 0]
    return {each.name: value for each, value in zip(view(SNR).features, found, strict=True)}


def test_a_lag_is_filled_by_a_value_at_most_15_minutes_older():
    def lag(minutes):
        return line_of({"snr_db": np.array(minutes, float)}, minutes)["lag_30"]

    there = [*range(-90, -44), *range(-29, 0)]
    assert lag(sorted([*there, -30])) == -30
    assert lag(there) == -45
    assert np.isnan(lag([minute for minute in there if minute != -45]))


@given(st.integers(0, 2**32), st.floats(0.05, 1))
def test_columns_of_minutes_and_blocks_agree_with_numpy_on_what_is_there(seed, share):
    dice = np.random.default_rng(seed)
    day = np.where(dice.uniform(size=1440) < share, dice.normal(10, 2, 1440), np.nan)
    day[-15:] = dice.normal(10, 2, 15)
    there = np.flatnonzero(~np.isnan(day))
    found = line_of({"snr_db": day[there]}, there - 1440)
    blocks = day.reshape(-1, 5)
    means = np.nanmean(blocks[~np.isnan(blocks).all(1)], axis=1)
    for span, values in (("15m", day[-15:]), ("60m", day[-60:]), ("24h", means)):
        due = {"mean": np.nanmean(values), "spread": np.nanstd(values)}
        if span != "24h":
            due |= {"min": np.nanmin(values), "max": np.nanmax(values)}
            due["move"] = np.nanmean(np.abs(np.diff(values)))
        assert {name: found[f"{name}_{span}"] for name in due} == pytest.approx(due)
    levels = np.quantile(means, (0.1, 0.5, 0.9))
    assert [found[f"{name}_24h"] for name in SNR.quantile_names] == pytest.approx(levels)


@given(st.integers(0, 2**32), st.floats(0.3, 1))
def test_columns_of_hours_agree_with_numpy_on_what_is_there(seed, share):
    """Hours are used one by one until 25 hours before the hour of the issue time."""
    dice = np.random.default_rng(seed)
    starts = np.arange(-167, -25) * 60
    hours = np.where(
        dice.uniform(size=len(starts)) < share, dice.normal(10, 2, len(starts)), np.nan
    )
    hours[:2] = 9.0, 11.0
    there = ~np.isnan(hours)
    found = line_of({"snr_db": hours[there]}, starts[there] + 7)
    changes = np.diff(hours)
    due = {
        "mean_6d": np.nanmean(hours),
        "spread_6d": np.nanstd(hours),
        "move_6d": np.nanmean(np.abs(changes)),
        "move_p10_6d": np.nanquantile(changes, 0.1),
        "move_p90_6d": np.nanquantile(changes, 0.9),
        "present_6d": there.mean(),
    }

    # Between the middles of hours the level is linear, and unknown next to a missing hour.
    def level(minutes):
        index, minute = np.divmod(minutes - starts[0] - 30, 60)
        return (hours[index] * (60 - minute) + hours[index + 1] * minute) / 60

    days = -1440 * np.arange(2, 7)
    for horizon in SNR.horizons_minutes:
        moved = level(days + horizon) - level(days)
        moved = moved[~np.isnan(moved)]
        due[f"same_time_{horizon}m"] = moved.mean() if len(moved) else np.nan
    assert {name: found[name] for name in due} == pytest.approx(due, nan_ok=True)


def test_error_quantiles_are_of_errors_whose_truth_was_known():
    # A ramp: the last value is wrong by the horizon and the half minute, never by more.
    rows = link(range(-3 * 1440, 0))
    ramp = Rows(rows.times_ns, {"snr_db": np.arange(len(rows.times_ns)) * 0.01})
    found = features(SNR, [ramp], np.array([NOON])).matrix[0, 0]
    for horizon in SNR.horizons_minutes:
        for name in SNR.quantile_names:
            column = view(SNR).index(f"error_{name}_{horizon}m")
            assert found[column] == pytest.approx(0.01 * horizon)


def test_same_time_of_day_is_that_of_the_target():
    found = features(DEMAND, [pool(range(-700, 0))], np.array([NOON])).matrix[0, 0]
    rows = pool(range(-700, 0))
    for horizon in DEMAND.horizons_minutes:
        target = NOON + horizon * MINUTE - WINDOW
        day_before = rows.fields["offered_bytes"][rows.times_ns == target - DAY][0]
        assert found[view(DEMAND).index(f"yesterday_{horizon}m")] == day_before


def test_geometry_is_carried_on_from_how_the_satellite_moved():
    rows = history(SNR)
    found = features(SNR, [rows], np.array([NOON])).matrix[0, 0]
    now = rows.fields["elevation_deg"][np.searchsorted(rows.times_ns, NOON)]
    assert found[view(SNR).index("elevation")] == pytest.approx(now, abs=0.01)
    rise = found[view(SNR).index("elevation_60m")] - now
    assert rise == pytest.approx(60 / 400, abs=0.1)
    assert np.isnan(found[view(SNR).index("path_loss_60m")])  # nobody told a range


def test_a_measured_distance_is_carried_on_with_the_direction():
    minutes = np.arange(-30.0, 0)
    fixed = np.full(30, 25.0)
    distance = 1000 + 10 * (minutes + 0.5)  # at the middle of the minute
    found = line_of(
        {"snr_db": fixed, "elevation_deg": fixed, "azimuth_deg": fixed, "slant_range_km": distance},
        minutes.astype(int),
    )
    assert found["elevation_60m"] == pytest.approx(25)
    assert found["path_loss_60m"] == pytest.approx(20 * np.log10(1600 / 1000), abs=1e-4)


def passes(of_elevation):
    """A link whose satellite rises for two hours of six, and sets, until two hours before noon."""
    phase = np.arange(-2 * 1440, 0) % 360
    up = np.flatnonzero(phase < 120)
    elevation = 60 - np.abs(phase[up] - 60.0)
    values = {"snr_db": of_elevation(elevation), "elevation_deg": elevation}
    times = NOON + (up - 2 * 1440) * MINUTE
    return Rows(times, {**values, "azimuth_deg": np.full(len(up), 90.0)})


def test_a_link_remembers_its_curve_over_elevation():
    rising = NOON - 6 * 60 * MINUTE + 21 * MINUTE  # at 20 degrees
    found = features(SNR, [passes(lambda deg: 30 + deg / 4)], np.array([rising])).matrix[0, 0]

    def column(name):
        return found[view(SNR).index(name)]

    assert column("curve_15m") == pytest.approx(30 + 35 / 4, abs=0.4)
    assert column("curve_change_15m") == pytest.approx(15 / 4, abs=0.4)
    assert column("curve_moved_15m") == pytest.approx(30 + 35 / 4, abs=0.4)
    assert column("curve_offset") == pytest.approx(0, abs=0.2)
    assert 0.3 < column("curve_support_15m") < 0.8
    assert column("curve_spread_15m") < 0.6


def test_a_curve_leaves_out_the_newest_two_hours():
    rows = passes(lambda deg: deg)
    rising = NOON - 6 * 60 * MINUTE + 21 * MINUTE
    own = (rows.times_ns >= rising - 120 * MINUTE) & (rows.times_ns < rising)
    louder = {**rows.fields, "snr_db": rows.fields["snr_db"] + 3.0 * own}
    before, after = (
        features(SNR, [Rows(rows.times_ns, fields)], np.array([rising])).matrix[0, 0]
        for fields in (rows.fields, louder)
    )
    column = view(SNR).index
    assert after[column("curve_30m")] == before[column("curve_30m")]
    offsets = (each[column("curve_offset")] for each in (before, after))
    assert -np.subtract(*offsets) == pytest.approx(3.0)


def test_a_link_without_a_direction_has_no_curve():
    found = features(SNR, [link(range(-1440, 0))], np.array([NOON])).matrix[0, 0]
    curve = [i for i, each in enumerate(view(SNR).features) if each.name.startswith("curve")]
    assert len(curve) == 21
    assert np.isnan(found[curve]).all()


def test_the_id_of_a_view_follows_its_content():
    one = Feature("a", "dB", "15m", "level")
    views = [
        FeatureView("snr", features)
        for features in (
            (one, Feature("b", "dB", "15m", "level")),
            (Feature("b", "dB", "15m", "level"), one),
            (one, Feature("b", "B", "15m", "level")),
            (one, Feature("b", "dB", "60m", "level")),
        )
    ]
    assert len({v.id for v in views}) == 4
    assert FeatureView("snr", views[0].features).id == views[0].id
    assert {len(view(f).features) for f in FAMILIES.values()} == {
        features(f, [history(f)], np.array([NOON])).matrix.shape[-1] for f in FAMILIES.values()
    }


def test_rows_that_are_not_in_order_are_put_in_order():
    frame = pl.DataFrame(
        {
            "entity_id": ["b", "a", "b", "a", "b"],
            "time": pl.Series([3, 2, 1, 2, 1]).cast(pl.Datetime("ns")),
            "snr_db": [1.0, 2.0, None, 4.0, 5.0],
        }
    )
    read = rows_by_entity(frame, SNR.fields)
    assert {entity: rows.times_ns.tolist() for entity, rows in read.items()} == {
        "a": [2, 2],
        "b": [1, 1, 3],
    }
    assert read["a"].fields["snr_db"].tolist() == [2.0, 4.0]
    assert np.array_equal(read["b"].fields["snr_db"], [np.nan, 5.0, 1.0], equal_nan=True)


def records_of(family, entity, rows):
    for index, time_ns in enumerate(rows.times_ns):
        yield {
            "measurement": family.measurement,
            "time": format_time(int(time_ns)),
            "tags": {"entity_id": entity},
            "fields": {name: float(values[index]) for name, values in rows.fields.items()},
        }


@pytest.fixture(scope="module", params=FAMILIES.values())
def stored(request):
    """A family, a plane with its entities `a` and `b`, and their rows."""
    family = request.param
    dice = np.random.default_rng(1)
    whole = history(family)
    kept = dice.uniform(size=len(whole.times_ns)) < (0.85 if family is SNR else 0.995)
    thin = Rows(whole.times_ns[kept], {name: v[kept] for name, v in whole.fields.items()})
    plane = Plane.in_memory("acme")
    for entity, rows in (("b", whole), ("a", thin)):
        records = list(records_of(family, entity, rows))
        for first in range(0, len(records), 1000):
            plane.write_json(encode_records(records[first : first + 1000]), now_ns=NOON + DAY)
    return family, plane, {"b": whole, "a": thin}


def test_a_store_gives_the_features_that_a_file_gives(stored):
    """From means of minutes and hours, at a sampling that is neither even nor whole."""
    family, plane, known = stored
    issued = NOON + 3 * family.step_ns
    read = rows_before(plane, family, ["b", "nobody", "a"], issued)
    assert sorted(read) == ["a", "b"]
    entities = [read.get(entity, NO_ROWS) for entity in ("b", "nobody", "a")]
    found = features(family, entities, np.array([issued]))
    assert found.errors[:, 0].tolist() == [None, "no_telemetry", None]
    for index, rows in ((0, known["b"]), (2, known["a"])):
        alone = features(family, [rows], np.array([issued])).matrix[0]
        assert np.allclose(found.matrix[index], alone, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_many_entities_are_read_a_few_at_a_time_and_give_the_same(stored):
    family, plane, _ = stored
    issued = NOON + 3 * family.step_ns
    asked = ["b", *(f"nobody-{number}" for number in range(100)), "a"]
    many = features_of(plane, family, asked, issued)
    few = features_of(plane, family, ["b", "a"], issued)
    assert np.array_equal(many.matrix[[0, -1]], few.matrix, equal_nan=True)
    assert many.errors[[0, -1]].tolist() == few.errors.tolist() == [[None], [None]]
    assert set(many.errors[1:-1, 0]) == {"no_telemetry"}


def test_the_truth_of_a_batch_is_that_of_each_entity(stored):
    family, plane, known = stored
    issued = NOON - DAY
    asked = ["b", "nobody", "a"]
    for index, horizon in enumerate(family.horizons_minutes):
        truths = truths_of(plane, family, asked, issued, horizon)
        alone = [
            observed(family, known.get(each, NO_ROWS), np.array([issued]))[0, index]
            for each in asked
        ]
        assert np.array_equal(truths, alone, equal_nan=True)
        assert np.isfinite(truths[0])
        assert np.isnan(truths[1])
