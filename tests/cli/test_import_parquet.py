"""Imports of Parquet that are killed or find the disk full go on where they were."""

import json
import os
import random
import subprocess
import sys
from contextlib import contextmanager
from datetime import time

import polars as pl
import pytest

from fleetcast.cli.main import run
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.small_disk import enlarge, small_disk

ROWS, FIELDS = 60_000, 100  # six pieces, since a piece has a million values at most
ROUNDS = 40 if os.environ.get("FAULTS") == "full" else 2
COMMAND = [sys.executable, "-c", "from fleetcast.cli import main; main()", "import"]
OPTIONS = ["--format", "parquet", "--max-rejects", "1000", "--json"]
START_NS = 1_767_225_600_000_000_000


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Rows with their numbers, some of which are rejected, each for another reason."""
    path = tmp_path_factory.mktemp("parquet") / "f.parquet"
    number = pl.int_range(ROWS, dtype=pl.Int64, eager=True)
    kind = number % 9_973
    frame = pl.DataFrame(
        {
            "time": pl.select(pl.when(kind == 5).then(0).otherwise(number + START_NS)).to_series(),
            "measurement": ["link"] * ROWS,
            "entity_id": [f"l-{at % 50}" for at in range(ROWS)],
            "number": number.cast(pl.Float64),
        }
    )
    dice = random.Random(7)
    noise = pl.Series([dice.random() for _ in range(ROWS)])
    more = [(noise * at + number).alias(f"f{at}") for at in range(FIELDS)]
    fields = [pl.when(kind != 6).then(column).alias(column.name) for column in more]
    infinite = pl.when(kind == 7).then(float("inf")).otherwise(pl.col("f0")).alias("f0")
    number = pl.when(kind != 6).then(pl.col("number")).alias("number")
    frame = frame.with_columns(fields).with_columns(infinite, number)
    times = pl.from_epoch("time", time_unit="ns").dt.replace_time_zone("UTC")
    frame.with_columns(times).write_parquet(path, row_group_size=10_000)
    return path


SOUND = [float(number) for number in range(ROWS) if number % 9_973 not in {5, 6, 7}]


@contextmanager
def plane_of(data, tenant):
    with opened(DataDirectory(data), os.environ) as installation:
        found = installation.tenants.get(tenant)
        yield installation.engine.plane(found.account_id, found.name)


def numbers(plane):
    frame = pl.DataFrame(plane.scan(0, 2**62))
    return sorted(frame.get_column("number", default=pl.Series([])).to_list())


def fate(report, rejects):
    """Numbers, reasons and rejected records."""
    names = ("accepted", "rejected", "reasons", "rejections", "no_entity", "clamped")
    return [report[name] for name in names], rejects.read_text()


def test_a_killed_import_stores_and_reports_what_one_does_that_nobody_stopped(
    file, call, data, tmp_path
):
    call("tenant", "create", "acme")
    call("tenant", "create", "other")
    rejects = [tmp_path / "rejects", tmp_path / "of-other"]
    whole = call("import", "--tenant", "other", *OPTIONS[:-1], "--rejects", rejects[1], file)
    command = [*COMMAND, "--tenant", "acme", *OPTIONS, "--rejects", rejects[0]]
    command += ["--resume", tmp_path / "resume", file]
    dice = random.Random(os.environ.get("FAULTS_SEED", "7"))
    with plane_of(data, "acme") as plane:
        for _ in range(ROUNDS):
            have = plane.stats().rows
            if have == len(SOUND):  # the last one was done before it was killed
                break
            wanted = dice.randrange(have, (have + len(SOUND)) // 2)
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                while plane.stats().rows <= wanted and process.poll() is None:
                    pass
                process.kill()
            stored = numbers(plane)
            assert stored == SOUND[: len(stored)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert fate(json.loads(done.stdout), rejects[0]) == fate(whole, rejects[1])
    assert whole["reasons"] == {
        "time: before 2000-01-01T00:00:00Z": 7,
        "fields: missing": 7,
        "fields.f0: Input should be a finite number": 7,
    }
    for tenant in ("acme", "other"):
        with plane_of(data, tenant) as plane:
            assert numbers(plane) == SOUND
    again = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert json.loads(again.stdout) == json.loads(done.stdout)


def test_an_import_that_fills_the_disk_says_how_far_it_came_and_goes_on(
    file, tmp_path, monkeypatch, capsys
):
    with small_disk(tmp_path / "small", "24m") as folder:
        monkeypatch.setenv("FLEETCAST_DATA", str(folder / "data"))
        assert run(["init"]) == 0
        assert run(["tenant", "create", "acme"]) == 0
        capsys.readouterr()
        command = ["import", "--tenant", "acme", *OPTIONS, "--resume", str(tmp_path / "resume")]
        assert run([*command, str(file)]) == 1
        out, err = capsys.readouterr()
        report = json.loads(out)
        done = report["accepted"] + report["rejected"]
        assert 0 < done < ROWS
        assert f"stored is all up to {file}:{done}; the same command goes on from there" in err
        enlarge(folder, "200m")  # a scan of a long log needs room as well
        with plane_of(folder / "data", "acme") as plane:
            assert numbers(plane) == [number for number in SOUND if number < done]
        assert run([*command, str(file)]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["accepted"], report["rejected"]) == (len(SOUND), ROWS - len(SOUND))
        with plane_of(folder / "data", "acme") as plane:
            assert numbers(plane) == SOUND


@pytest.mark.parametrize(
    "columns",
    [
        {"text": pl.Series(["x" * 900 + str(at) for at in range(40_000)])},
        {f"f{field}": pl.Series([float(field)] * 40_000) for field in range(130)},
    ],
    ids=["much text", "many columns"],
)
def test_rows_of_any_size_are_exported_and_imported_again_once(call, tmp_path, columns):
    """36 MB of text or 5 million values: an error came once all rows were stored."""
    for tenant in ("acme", "copy"):
        call("tenant", "create", tenant)
    count = 40_000
    frame = pl.DataFrame({"entity_id": ["e"] * count} | columns)
    times = pl.int_range(count, dtype=pl.Int64, eager=True).rename("time") + START_NS
    stamps = times.cast(pl.Datetime("ns", "UTC"))
    path = tmp_path / "rows.parquet"
    frame.with_columns(stamps, measurement=pl.lit("link")).write_parquet(path)
    exported = tmp_path / "exported.parquet"
    assert call("import", "--tenant", "acme", "--format", "parquet", path)["accepted"] == count
    span = ("--start", "2025-12-01", "--end", "2026-12-01")
    call("export", "--tenant", "acme", "--format", "parquet", *span, exported)
    assert call("import", "--tenant", "copy", "--format", "parquet", exported)["accepted"] == count
    hashes = [call("verify", tenant)["tenants"] for tenant in ("acme", "copy")]
    assert hashes[0][0]["answers"] == hashes[1][0]["answers"]


def parquet(tmp_path, **columns):
    path = tmp_path / "rows.parquet"
    times = pl.Series("time", ["2026-01-01T00:00:00Z"] * len(next(iter(columns.values()))))
    pl.DataFrame({"time": times, "measurement": "link"} | columns).write_parquet(path)
    return path


def test_a_time_of_day_keeps_its_fraction(call, data, tmp_path):
    times = [time(1, 2, 3, 456789), time(1, 2, 3)]
    path = parquet(tmp_path, entity_id=["a", "b"], at=times)
    call("tenant", "create", "acme")
    call("import", "--tenant", "acme", "--format", "parquet", path)
    with plane_of(data, "acme") as plane:
        found = pl.DataFrame(plane.scan(0, 2**62))
    assert sorted(found["at"]) == ["01:02:03", "01:02:03.456789"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"d": pl.Series([1], dtype=pl.Duration("us")), "x": [1.0]}, "column d has Duration"),
        ({"entity_id": pl.Series([b"a\xff"]), "x": [1.0]}, "column entity_id has bytes that are"),
        ({"entity_id": pl.Series([["a"]]), "x": [1.0]}, "column entity_id has List(String)"),
    ],
)
def test_a_column_that_cannot_be_stored_is_refused_by_its_name(fail, tmp_path, columns, said):
    assert run(["tenant", "create", "acme"]) == 0
    path = parquet(tmp_path, **columns)
    (line,) = fail("import", "--tenant", "acme", "--format", "parquet", path)
    assert said in line
