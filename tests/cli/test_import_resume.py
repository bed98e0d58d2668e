"""Imports that are stopped at any moment: nothing is stored twice, and nothing is left out."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter

import polars as pl
import pytest

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from fleetcast.transfer.pieces import PIECE_BYTES
from tests.waiting import until

RECORDS = 120_000
ROUNDS = 40 if os.environ.get("FAULTS") == "full" else 3
COMMAND = [sys.executable, "-c", "from fleetcast.cli import main; main()", "import"]


def line(number):
    """A record with its number; some lines are rejected, each for another reason."""
    record = {
        "measurement": "link",
        "time": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        "tags": {"entity_id": f"l-{number % 50}"},
        "fields": {"number": number},
    }
    if number % 9_973 == 5:
        return "{"
    if number % 9_973 == 6:
        record["fields"] = {}
    if number % 9_973 == 7:
        record["fields"] = {"number": "text"}
    if number % 9_973 == 8:
        record["time"] = "1999-01-01"
    return json.dumps(record)


def is_sound(number):
    return number % 9_973 not in {5, 6, 7, 8}


@pytest.fixture
def file(tmp_path, call):
    call("tenant", "create", "acme")
    file = tmp_path / "f.jsonl"
    file.write_text("".join(line(number) + "\n" for number in range(RECORDS)))
    return file


def stored(data):
    with opened(DataDirectory(data), os.environ) as installation:
        tenant = installation.tenants.get("acme")
        plane = installation.engine.plane(tenant.account_id, tenant.name)
        frame = pl.DataFrame(plane.scan(0, 2**62))
    return Counter(frame["number"].to_list() if "number" in frame.columns else ())


def protocol_line(number):
    """The same in line protocol; texts of some lines go on in the next one."""
    tags, time = f"link,entity_id=l-{number % 50}", 1767225600 + number
    note = ',note="two\nlines"' if number % 5 == 0 else ""
    return {
        5: "link broken",
        6: f"{tags}  {time}",
        7: f'{tags} number="text" {time}',
        8: f"{tags} number={number} 900000000",
    }.get(number % 9_973, f"{tags} number={number}{note} {time}")


def csv_line(number):
    """The same as a row of CSV."""
    note = '"two\nlines, ""quoted"""' if number % 5 == 0 else ""
    return {
        5: f"{1767225600 + number},l-1",
        6: f"{1767225600 + number},l-1,,",
        7: f"{1767225600 + number},l-1,text,",
        8: f"900000000,l-1,{number},",
    }.get(number % 9_973, f"{1767225600 + number},l-{number % 50},{number},{note}")


CSV_OPTIONS = ["--time-column", "at", "--time-unit", "s", "--measurement", "link"]
FORMS = {
    "jsonl": ("", line, []),
    "line-protocol": ("", protocol_line, ["--time-unit", "s"]),
    "csv": ("at,entity_id,number,note\n", csv_line, CSV_OPTIONS),
}


@contextlib.contextmanager
def fed(fifo, text):
    """Has whoever reads the pipe read nearly all of `text`, and wait for more in the block."""

    def pipe():
        with contextlib.suppress(OSError):  # nobody reads yet
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)

    with os.fdopen(until(pipe), "wb", buffering=0) as file:
        os.set_blocking(file.fileno(), True)
        file.write(text)
        yield


@pytest.mark.parametrize("form", FORMS)
def test_a_killed_import_goes_on_and_stores_every_record_once(call, data, tmp_path, form):
    """Its rows and its report are those of an import that nobody stopped."""
    call("tenant", "create", "acme")
    call("tenant", "create", "other")
    header, record, options = FORMS[form]
    text = (header + "".join(record(n) + "\n" for n in range(RECORDS))).encode()
    fifo, whole = tmp_path / "fifo", tmp_path / "whole"
    os.mkfifo(fifo)
    whole.write_bytes(text)
    options = ["--format", form, *options, "--max-rejects", "1000"]
    expected = call("import", "--tenant", "other", *options, "--rejects", tmp_path / "r", whole)
    rejects = tmp_path / "rejects"
    options += ["--tenant", "acme", "--json", "--resume", tmp_path / "resume", "--rejects", rejects]
    command = [*COMMAND, *options, fifo]
    dice = random.Random(os.environ.get("FAULTS_SEED", "7"))
    for number in range(ROUNDS):
        cut = dice.randrange(PIECE_BYTES + 100_000, len(text))
        with (
            subprocess.Popen(command, stdout=subprocess.DEVNULL) as process,
            fed(fifo, text[:cut]),
        ):
            if number == 0:
                until(lambda: stored(data).total())
            process.kill()
            process.wait()
    assert 0 < stored(data).total() < RECORDS
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        with fed(fifo, text):
            pass
        report = json.loads(process.stdout.read())
    assert process.returncode == 0
    sound = [number for number in range(RECORDS) if is_sound(number)]
    assert stored(data) == Counter(map(float, sound))
    assert report["accepted"] == len(sound)
    assert fate(report, rejects) == fate(expected, tmp_path / "r")
    again = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert json.loads(again.stdout) == report
    assert stored(data).total() == len(sound)


def fate(report, rejects):
    """Numbers, reasons and rejected records, whatever the file is called."""
    rejected = [json.loads(text) | {"file": ""} for text in rejects.read_text().splitlines()]
    names = ("accepted", "rejected", "reasons", "no_entity", "other_measurement", "clamped")
    return [report[name] for name in names], rejected


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_says_what_is_stored(file, data, signal_number):
    file.write_text("".join(line(number) + "\n" for number in range(RECORDS) if is_sound(number)))
    command = [*COMMAND, "--tenant", "acme", "--format", "jsonl", "--json", "-"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(file.read_bytes())
    process.stdin.flush()
    until(lambda: stored(data).total() > 0)
    process.send_signal(signal_number)
    out, err = process.communicate()
    assert process.returncode == 130
    report = json.loads(out)
    count = stored(data).total()
    assert report["accepted"] == count > 0
    assert f"interrupted; stored is all up to -:{count};" in err.decode()
    assert f"`tail -n +{count + 1}`" in err.decode()


def test_another_import_may_not_use_the_file(file, call, fail, tmp_path):
    resume = tmp_path / "resume"
    options = ("--tenant", "acme", "--format", "jsonl", "--max-rejects", "1000")
    first = call("import", *options, "--resume", resume, file)
    with file.open("a") as more:
        more.write(line(0) + "\n")
    (message,) = fail("import", *options, "--resume", resume, file)
    assert "belongs to another import: files" in message
    resume.write_text("{}")
    assert "is no file of --resume" in fail("import", *options, "--resume", resume, file)[0]
    assert first["accepted"] > 0


def test_a_store_that_fell_behind_is_not_written_past(file, call, fail, tmp_path, data):
    resume = tmp_path / "resume"
    options = ("--tenant", "acme", "--format", "jsonl", "--resume", resume)
    call("import", *options, file, status=1)
    state = json.loads(resume.read_text())
    state |= {"is_done": False, "stored": [0, RECORDS], "noted": [0, RECORDS]}
    resume.write_text(json.dumps(state))
    assert "the store has forgotten this import" in fail("import", *options, file)[0]
    assert stored(data).total() == state["report"]["accepted"]
