"""`forecast backtest --threshold`: outages missed, false alarms, and how far ahead."""

import json

import numpy as np
import polars as pl
import pytest

from fleetcast.cli.main import run
from fleetcast.errors import OperatorError
from fleetcast.forecast.alarms import adapted
from fleetcast.forecast.outages import WITHIN, Watch, report, watch
from fleetcast.forecast.rows import Rows

from .conftest import DAY, MINUTE, NOON

MIDNIGHT = NOON - DAY // 2


def rows_of(levels):
    """A sample a minute; the last of them is of the minute before `MIDNIGHT` + 2 days."""
    levels = np.asarray(levels, float)
    times = MIDNIGHT + 2 * DAY - MINUTE * np.arange(len(levels), 0, -1)
    return Rows(times, {"snr_db": levels})


def falls(*minutes, days=4, length=5, depth=6.0):
    """A link at 10 dB that falls for a while, so many minutes after `MIDNIGHT`."""
    levels = np.full(days * 1440, 10.0)
    for minute in minutes:
        start = (days - 2) * 1440 + minute
        levels[start : start + length] -= depth
    return rows_of(levels)


def watched(rows, step=5, threshold=3.0):
    issued = MIDNIGHT + np.arange(0, 2 * 1440, step) * MINUTE
    quantiles = np.broadcast_to([9.0, 10.0, 11.0], (len(issued), 4, 3))
    return watch(rows, issued, quantiles, threshold)


def minute(one):
    return one - MIDNIGHT // MINUTE


def test_an_outage_begins_below_the_level_after_half_an_hour_above_it():
    one = watched(falls(100, 120, 300))
    assert minute(one.onsets).tolist() == [100, 300]  # at 120 the first is hardly over
    assert set(minute(one.issued[one.down])) >= {75, 100, 275, 300}
    up = set(minute(one.issued).tolist())
    assert up.isdisjoint(range(101, 155)), "down, or not up for long enough"
    assert 70 in up
    assert not one.down[minute(one.issued) == 70]
    assert (one.margin == 3).all()


def test_the_level_is_the_median_of_the_days_before_and_needs_half_a_day():
    assert len(watched(falls(100, depth=2.9)).onsets) == 0
    assert len(watched(falls(100, depth=2.9), threshold=2.8).onsets) == 1
    assert len(watched(rows_of(np.full(2 * 1440 + 700, 10.0))).issued) < 2 * 288
    day = falls(100)
    assert len(watched(Rows(day.times_ns, {"snr_db": day.fields["snr_db"] - 80.0})).onsets) == 1


def links(count, seed=3, *, warned=True):
    """Links whose signs grow before an outage, or are noise; two days a link, an onset each."""
    dice = np.random.default_rng(seed)
    watches = []
    for _ in range(count):
        issued = MIDNIGHT // MINUTE + np.arange(0, 2 * 1440, 5)
        onsets = MIDNIGHT // MINUTE + np.array([300, 1440 + 300]) + dice.integers(0, 300, 2)
        down = ((onsets > issued[:, None]) & (onsets <= issued[:, None] + WITHIN)).any(1)
        signs = dice.normal(size=(len(issued), 7))
        if warned:
            signs[:, 2] += 8 * down
        margin = 3 + dice.normal(size=len(issued)) * 0.1
        watches.append(Watch(issued, signs, margin, down, onsets))
    return watches


def test_signs_that_grow_before_outages_are_found_out_and_the_last_value_is_not_enough():
    found = report(links(20), 5, MIDNIGHT + DAY)
    model, last = (found.forecasts[who] for who in ("model", "last_value"))
    assert model.outages == last.outages == 20  # of the second day
    assert model.missed == 0
    assert model.false_alarms < 1.5
    assert model.lead_minutes > 20
    assert last.missed > 10
    assert found.fewer_missed.share == 1
    assert found.fewer_missed.low == 1


def test_noise_is_no_better_than_the_last_value_of_noise():
    found = report(links(20, warned=False), 5, MIDNIGHT + DAY)
    assert found.forecasts["model"].missed > 10
    assert found.forecasts["model"].false_alarms < 2


def test_outages_after_the_calibration_change_neither_weights_nor_first_levels():
    """Judged on another second day the same warnings of the first day come out."""
    first, second = links(20), links(20, seed=9)
    both = [
        Watch(
            a.issued,
            np.where((a.issued < (MIDNIGHT + DAY) // MINUTE)[:, None], a.signs, b.signs[::-1]),
            a.margin,
            np.where(a.issued < (MIDNIGHT + DAY) // MINUTE, a.down, b.down[::-1]),
            np.append(a.onsets[:1], b.onsets[1:]),
        )
        for a, b in zip(first, second, strict=True)
    ]
    until = MIDNIGHT + DAY
    cut = [
        Watch(w.issued[:300], w.signs[:300], w.margin[:300], w.down[:300], w.onsets[:1])
        for w in both
    ]
    changed, short = report(both, 5, until), report(cut, 5, until)
    assert short.forecasts["model"].outages == 0
    assert changed.forecasts["model"].outages == 20


def rain(days=6, count=30):
    """Issue times and scores of links that stay up, with larger scores in the second half."""
    issued = np.arange(0, days * 1440, 5)
    scores = np.random.default_rng(1).normal(size=(count, len(issued)))
    return np.tile(issued, (count, 1)), scores + 2.0 * (issued >= days * 720)


def levels_of(issued, scores, down, first):
    start, expected = (2 * 1440, first), 1 / 288
    args = (list(each) for each in (issued, scores, down))
    return np.array(adapted(*args, start, within_minutes=WITHIN, expected=expected))


def test_the_level_of_alarm_goes_up_until_false_alarms_are_as_many_as_expected():
    issued, scores = rain()
    first = float(np.quantile(scores[:, :864], 1 - 1 / 288))
    levels = levels_of(issued, scores, np.zeros(scores.shape, bool), first)
    last_day = scores[:, -288:]
    assert (last_day >= first).sum(1).mean() > 30
    assert 0.5 < (last_day >= levels[:, -288:]).sum(1).mean() < 2


def test_a_level_of_alarm_knows_outcomes_only_after_their_half_hour():
    issued, scores = rain()
    down = np.zeros(scores.shape, bool)
    levels = levels_of(issued, scores, down, 2.5)
    assert (levels[:, : 2 * 288] == 2.5).all()
    assert len(np.unique(levels[0])) > 100
    now = 4 * 288
    down[:, now - WITHIN // 5 :] = True
    known = levels_of(*(each[:, :now] for each in (issued, scores, down)), 2.5)
    assert np.array_equal(known, levels[:, :now])


def test_without_an_outage_to_calibrate_by_it_says_so():
    with pytest.raises(OperatorError, match="no outage to calibrate by"):
        report([watched(falls(2000))], 5, MIDNIGHT + DAY)


@pytest.fixture
def command(tmp_path, capsys):
    def command(*options, family="snr"):
        rows = falls(400, 900, 1440 + 500, days=9)
        pl.DataFrame({"time": rows.times_ns, **rows.fields}).with_columns(
            pl.col("time").cast(pl.Datetime("ns", "UTC")), pl.lit("a").alias("entity_id")
        ).write_parquet(tmp_path / "in.parquet")
        files = ["--input", str(tmp_path / "in.parquet"), "--output", str(tmp_path / "out.parquet")]
        times = ["--start", "2025-10-09T00:00:00", "--end", "2025-10-10T23:00:00", "--every", "5m"]
        status = run(["forecast", "backtest", "--family", family, *files, *times, *options])
        return status, capsys.readouterr()

    return command


def test_the_command_reports_outages_beside_the_last_value(command):
    status, (out, _) = command("--threshold", "3", "--json")
    assert status == 0
    outages = json.loads(out)["outages"]
    assert outages["threshold_db"] == 3
    assert outages["within_minutes"] == 30
    assert {who: line["outages"] for who, line in outages["forecasts"].items()} == {
        "model": 1,
        "last_value": 1,
    }
    later = json.loads(
        command("--threshold", "3", "--calibrate-until", "2025-10-09T10:00:00", "--json")[1].out
    )
    assert later["outages"]["forecasts"]["model"]["outages"] == 2
    status, (out, _) = command("--threshold", "3")
    assert "FALSE ALARMS A LINK-DAY" in out


def test_a_threshold_is_of_links_and_above_nothing(command):
    assert command("--threshold", "0")[0] in {1, 2}
    status, (_, err) = command("--threshold", "3", family="demand")
    assert status == 1
    assert "--family snr" in err
