"""Full disks during an import and an export: what is there is whole, and the commands say so."""

import json
import os

import polars as pl
import pytest

from fleetcast.cli.main import run
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.small_disk import enlarge, small_disk

RECORDS = 60_000


@pytest.fixture
def small(tmp_path):
    """A file system of 12 MiB."""
    with small_disk(tmp_path / "small", "12m") as folder:
        yield folder


def lines(*, is_damaged=False):
    for number in range(RECORDS):
        if is_damaged and number % 997 == 5:
            yield "{"
            continue
        yield json.dumps(
            {
                "measurement": "link",
                "time": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
                "tags": {"entity_id": f"l-{number % 50}"},
                "fields": {"number": number, "note": os.urandom(300).hex()},
            }
        )


def scanned(data):
    with opened(DataDirectory(data), os.environ) as installation:
        tenant = installation.tenants.get("acme")
        plane = installation.engine.plane(tenant.account_id, tenant.name)
        return pl.DataFrame(plane.scan(0, 2**62))


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_import_says_how_far_it_came_and_goes_on(
    small, tmp_path, monkeypatch, capsys, is_damaged
):
    file, resume = tmp_path / "f.jsonl", tmp_path / "resume"
    file.write_text("".join(text + "\n" for text in lines(is_damaged=is_damaged)))
    monkeypatch.setenv("FLEETCAST_DATA", str(small / "data"))
    assert run(["init"]) == 0
    assert run(["tenant", "create", "acme"]) == 0
    capsys.readouterr()
    options = ["--tenant", "acme", "--format", "jsonl", "--resume", str(resume), "--json"]
    options += ["--max-rejects", "1000"]
    sound = [n for n in range(RECORDS) if not is_damaged or n % 997 != 5]
    assert run(["import", *options, str(file)]) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    done = report["accepted"] + report["rejected"]
    assert 0 < done < RECORDS
    assert f"stored is all up to {file}:{done}; the same command goes on from there" in err
    stored = sorted(scanned(small / "data")["number"].to_list())
    assert stored == [number for number in sound if number < done]
    enlarge(small, "200m")
    assert run(["import", *options, str(file)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["accepted"], report["rejected"]) == (len(sound), RECORDS - len(sound))
    assert sorted(scanned(small / "data")["number"].to_list()) == sound


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_an_export_that_does_not_fit_leaves_what_was_there(small, call, fail, tmp_path, form):
    file = tmp_path / "f.jsonl"
    file.write_text("".join(text + "\n" for text in lines()))
    call("tenant", "create", "acme")
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    target = small / "out"
    target.write_text("before")
    span = ("--start", "2026-01-01", "--end", "2026-02-01")
    (message,) = fail("export", "--tenant", "acme", "--format", form, *span, target)
    assert "space" in message
    assert [path.name for path in small.iterdir()] == ["out"]
    assert target.read_text() == "before"
