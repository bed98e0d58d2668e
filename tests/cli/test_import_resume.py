"""Imports that are stopped at any moment: nothing is stored twice, and nothing is left out."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter

import polars as pl
import pytest

from fleetcast.installation.directory import DataDirectory, opened
from tests.waiting import until

RECORDS = 120_000
ROUNDS = 40 if os.environ.get("FAULTS") == "full" else 6
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
    return Counter(frame["number"].to_list())


def test_a_killed_import_goes_on_and_stores_every_record_once(file, data, tmp_path):
    dice = random.Random(os.environ.get("FAULTS_SEED", "7"))
    resume, rejects = tmp_path / "resume", tmp_path / "rejects"
    options = ["--tenant", "acme", "--format", "jsonl", "--json", "--max-rejects", "1000"]
    command = [*COMMAND, *options, "--resume", resume, "--rejects", rejects, file]
    kills = 0
    for _ in range(ROUNDS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(dice.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    assert kills > 0
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    report = json.loads(done.stdout)
    sound = [number for number in range(RECORDS) if is_sound(number)]
    assert stored(data) == Counter(map(float, sound))
    assert (report["accepted"], report["rejected"]) == (len(sound), RECORDS - len(sound))
    rejected = [json.loads(text)["line"] for text in rejects.read_text().splitlines()]
    assert rejected == [number + 1 for number in range(RECORDS) if not is_sound(number)]
    again = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert json.loads(again.stdout) == report
    assert stored(data).total() == len(sound)


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
