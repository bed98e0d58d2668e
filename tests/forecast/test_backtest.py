"""`fleetcast forecast backtest`."""

import json
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from fleetcast.cli.main import run
from fleetcast.forecast.scores import Score

from .conftest import MINUTE, NOON, WINDOW, link, pool

COLUMNS = {
    "snr": ["entity_id", "issued_at", "horizon_minutes", "p10", "p50", "p90", "observed", "error"],
    "demand": [
        *("entity_id", "issued_at", "horizon_minutes", "p10", "p50", "p99", "observed", "error")
    ],
}


def frame(**entities):
    parts = [
        pl.DataFrame({"time": rows.times_ns, **rows.fields}).with_columns(
            pl.col("time").cast(pl.Datetime("ns", "UTC")), pl.lit(entity).alias("entity_id")
        )
        for entity, rows in entities.items()
    ]
    return pl.concat(parts)


def text(time_ns):
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat()


@pytest.fixture
def backtest(tmp_path, monkeypatch, capsys):
    """Runs the command in an empty directory: it needs no server and no data directory."""
    monkeypatch.chdir(tmp_path)

    def backtest(family, rows, start, end, step, status=0, name="in.parquet"):
        source, target = tmp_path / name, tmp_path / "out.parquet"
        if isinstance(rows, pl.DataFrame):
            (rows.write_csv if name.endswith("csv") else rows.write_parquet)(source)
        elif rows is not None:
            source.write_text(rows)
        options = ("--start", start, "--end", end, "--every", step, "--output", str(target))
        capsys.readouterr()
        got = run(
            ["forecast", "backtest", "--family", family, "--input", str(source), *options, "--json"]
        )
        out, err = capsys.readouterr()
        assert got == status
        if status:
            assert out == ""
            (line,) = err.splitlines()
            assert line.startswith("fleetcast: ")
            return line
        assert not (tmp_path / "fleetcast-data").exists()
        return pl.read_parquet(target), json.loads(out)

    return backtest


def links():
    late = link(range(30, 200), level=3.0)
    return frame(one=link(range(-3000, 200)), late=late)


def test_every_entity_origin_and_horizon_has_its_row(backtest):
    answers, document = backtest(
        "snr", links(), text(NOON + 20_000_000_000), text(NOON + 60 * MINUTE), "20m"
    )
    assert answers.columns == COLUMNS["snr"]
    assert answers.schema["issued_at"] == pl.Datetime("ns", "UTC")
    assert answers.height == 2 * 3 * 4 == document["rows"]
    issued = answers["issued_at"].cast(pl.Int64).unique().sort().to_list()
    assert issued == [NOON + k * 20 * MINUTE for k in range(3)]  # rounded down to whole minutes
    assert answers["horizon_minutes"].unique().sort().to_list() == [5, 15, 30, 60]
    assert (answers.drop_nulls("p10")["p10"] <= answers.drop_nulls("p10")["p90"]).all()


def test_an_entity_without_earlier_rows_gets_its_error_row(backtest):
    answers, _ = backtest("snr", links(), text(NOON), text(NOON + 60 * MINUTE), "20m")
    late = answers.filter(pl.col("entity_id") == "late").sort("issued_at", "horizon_minutes")
    codes = late.group_by("issued_at", maintain_order=True).agg(pl.col("error").first())
    assert codes["error"].to_list() == ["no_telemetry", "no_telemetry", None, None]
    early = late.filter(pl.col("error").is_not_null())
    assert early["p50"].null_count() == early.height == 8
    assert early["observed"].null_count() < early.height  # the truth came, whoever foresaw it


def test_an_answer_does_not_depend_on_other_origins_or_later_rows(backtest):
    end = NOON + 60 * MINUTE
    many, _ = backtest("snr", links(), text(NOON), text(end), "1m")
    cut = links().filter(pl.col("time") < pl.lit(NOON).cast(pl.Datetime("ns", "UTC")))
    one, _ = backtest("snr", cut, text(NOON), text(NOON), "1h")
    same = many.filter(pl.col("issued_at") == one["issued_at"][0], pl.col("entity_id") == "one")
    assert same.drop("observed").equals(one.drop("observed"))
    assert one["observed"].null_count() == one.height


def test_demand_from_csv_with_short_intervals(backtest):
    rows = frame(p=pool(range(-700, 10), per_window=3))
    answers, document = backtest(
        "demand", rows, text(NOON + 60_000_000_000), text(NOON + 2 * WINDOW), "15m", name="in.csv"
    )
    assert answers.columns == COLUMNS["demand"]
    assert answers["issued_at"].cast(pl.Int64).unique().sort().to_list() == [NOON, NOON + WINDOW]
    assert answers["p10"].null_count() == 0
    first = answers.filter(pl.col("horizon_minutes") == 15)
    window = pool(range(-700, 10)).fields["offered_bytes"][700]
    assert first["observed"][0] == pytest.approx(window, rel=0.02)
    assert document["scores"][0]["count"] == 2
    coverage = document["scores"][0]["coverage"]
    assert set(coverage) == {"p10", "p50", "p99"}


def test_origins_closer_than_a_step_share_their_issue_time(backtest):
    rows = frame(p=pool(range(-700, 10)))
    answers, _ = backtest("demand", rows, text(NOON), text(NOON + 14 * MINUTE), "7m")
    assert answers.height == 3 * 4
    assert answers["issued_at"].n_unique() == 1


def test_times_without_a_zone_are_in_utc_and_zones_are_converted(backtest):
    rows = links()
    naive = rows.with_columns(pl.col("time").dt.replace_time_zone(None))
    there = rows.with_columns(pl.col("time").dt.convert_time_zone("America/Bogota"))
    written = rows.with_columns(pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S%z"))
    answers = [
        backtest("snr", given, text(NOON), text(NOON), "1h", name=name)[0]
        for given, name in ((rows, "a.parquet"), (naive, "b.csv"), (there, "c"), (written, "d.csv"))
    ]
    assert all(answers[0].equals(other) for other in answers[1:])


def test_people_get_a_table(tmp_path, capsys):
    links().write_parquet(tmp_path / "in")
    arguments = ["--start", text(NOON), "--end", text(NOON), "--every", "1h"]
    files = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    assert run(["forecast", "backtest", "--family", "snr", *files, *arguments]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["HORIZON", "FORECAST"]
    assert [line.split()[:2] for line in lines[:4]] == [
        ["5m", "model"],
        ["5m", "last_value"],
        ["5m", "same_time"],
        ["15m", "model"],
    ]


HEADER = "entity_id,time,snr_db\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "lacks the column entity_id"),
        ("entity_id,time\na,2025-01-01\n", "lacks the column snr_db"),
        (HEADER, "no rows"),
        (HEADER + "a,yesterday,1\n", "'yesterday' is no time"),
        (HEADER + "a,,1\n", "is no time"),
        (HEADER + "a,2025-01-01T00:00:00Z,loud\n", "snr_db 'loud' is no number"),
        ("PAR1 and nothing more", "is Parquet that is damaged or cut short"),
        (HEADER + "a,2025-01-01,1,2\n", "no line has more cells than the first"),
    ],
)
def test_input_that_is_none_is_one_clear_line(content, said, backtest):
    assert said in backtest("snr", content, "2025-01-01", "2025-01-02", "1h", 1, "in.csv")


@pytest.mark.parametrize(
    ("start", "end", "step", "said"),
    [
        ("noon", "2025-01-02", "1h", "'noon' is not a time"),
        ("2025-01-02", "2025-01-01", "1h", "--end must not be before --start"),
        ("2025-01-01", "2025-01-02", "1x", "is not a duration"),
        ("2025-01-01", "2025-01-02", "0m", "--every"),
        ("1970-01-01", "2025-01-02", "1s", "origins are more than"),
    ],
)
def test_a_bad_option_is_one_clear_line(start, end, step, said, backtest):
    assert said in backtest("snr", links(), start, end, step, 1)


def test_an_output_that_cannot_be_written_is_told_before_the_work(tmp_path, capsys):
    links().write_parquet(tmp_path / "in")
    files = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "no" / "out")]
    times = ["--start", text(NOON), "--end", text(NOON), "--every", "1h"]
    assert run(["forecast", "backtest", "--family", "snr", *files, *times]) == 1
    assert "no such directory" in capsys.readouterr().err


def test_missing_files_and_options_have_their_status(backtest, capsys):
    assert "in.parquet" in backtest("snr", None, "2025-01-01", "2025-01-02", "1h", 1)
    assert run(["forecast", "backtest", "--family", "snr"]) == 2
    assert run(["forecast", "backtest", "--family", "weather"]) in {1, 2}
    assert capsys.readouterr().out == ""


def test_scores_are_what_their_definitions_say():
    score = Score((0.1, 0.5, 0.9), 2)
    truth = np.array([[10.0, np.nan], [-2.0, 4.0]])
    quantiles = np.array([[[8, 10, 11], [0, 0, 0]], [[0, 1, 2], [1, 4, np.nan]]], float)
    score.add(truth, quantiles)
    assert [score.count(h) for h in range(2)] == [2, 0]
    # Two of each quantile, p10 first: level times what is above, the rest of 1 times what is below.
    losses = [0.2, 1.8, 0.0, 1.5, 0.1, 0.4]
    assert score.mean_pinball(0) == pytest.approx(sum(losses) / 6)
    assert score.weighted_quantile_loss(0) == pytest.approx(2 * sum(losses) / 3 / 12)
    assert score.coverage(0) == [0.5, 1.0, 1.0]
    assert score.mean_pinball(1) is None
