"""Exports and scans that end at any moment: no file looks finished, and the store is as before.

`FAULTS=full` makes 60 rounds (`make faults`).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from fleetcast.cli.main import run
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened

from .test_full_disk import small  # noqa: F401 - a fixture

ROUNDS = 60 if os.environ.get("FAULTS") == "full" else 2
PIECES, ROWS, FIELDS = 4, 40_000, 8
START_NS = 1_767_225_600_000_000_000
SPAN = ("--start", "2026-01-01", "--end", "2026-02-01")
EVER = (0, 2**62)
MAPPING = {"time": "time", "time_unit": "ns", "measurement": "link", "entity": "id"}


@contextmanager
def plane_of(data):
    with opened(DataDirectory(data), os.environ) as installation:
        tenant = installation.tenants.get("acme")
        yield installation.engine.plane(tenant.account_id, tenant.name)


def fill(data):
    """More values than a scan of the log sorts in memory, so that it has segments of its own."""
    dice = np.random.default_rng(7)
    with plane_of(data) as plane:
        for piece in range(PIECES):
            times = START_NS + (piece * ROWS + np.arange(ROWS)) * 1_000_000_000
            fields = {f"f{of}": dice.normal(size=ROWS) for of in range(FIELDS)}
            frame = pl.DataFrame({"time": times, "id": [f"e{at % 40}" for at in range(ROWS)]})
            plane.write_arrow(frame.with_columns(**fields), mapping=MAPPING)


@pytest.fixture
def stored(call, data):
    call("tenant", "create", "acme")
    fill(data)
    return data


def segments(data):
    return sorted(path.name for path in data.glob("planes/*/segments/*"))


SCANNER = """
import os, sys
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from pathlib import Path
with opened(DataDirectory(Path(sys.argv[1])), os.environ) as installation:
    tenant = installation.tenants.get("acme")
    rows = installation.engine.plane(tenant.account_id, tenant.name).scan(0, 2**62)
    print(len(next(rows)), flush=True)
    sys.stdin.read()
"""


@contextmanager
def scanner(data):
    """A process within a scan, which stays there."""
    command = [sys.executable, "-c", SCANNER, str(data)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert int(process.stdout.readline()) > 0
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_a_killed_scan_kept_is_removed_by_the_next_compaction(stored, call):
    with plane_of(stored) as plane:
        before = pl.DataFrame(plane.scan(*EVER))
    assert segments(stored) == [], "a scan that ended leaves nothing"
    with scanner(stored) as process:
        own = segments(stored)
        assert own, "the log is longer than a scan sorts in memory"
        call("compact")
        assert set(own) < set(segments(stored)), "they stay while somebody reads them"
        process.send_signal(signal.SIGKILL)
        process.wait()
    with plane_of(stored) as plane:
        plane.delete(START_NS, START_NS + 1)
        plane.compact(whole=True)
    assert not set(own) & set(segments(stored))
    call("verify")
    with plane_of(stored) as plane:
        assert pl.DataFrame(plane.scan(*EVER)).height == before.height - 1


# All is loaded before the clock starts, so that a signal hits the work and not the imports. A
# job in the background ignores SIGINT, and so does what it starts.
CHILD = """
import os, signal, sys, threading, time
import polars, fleetcast.cli.export, fleetcast.transfer.exporting, fleetcast.transfer.table_export
from fleetcast.cli.main import run
seconds, part, number, *arguments = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)
def stop():
    time.sleep(float(seconds))
    os.kill(os.getpid(), int(number))
def look(event, details):
    if event == "os.rename" and str(details[0]) == part:
        signal.raise_signal(int(number))
if part:
    sys.addaudithook(look)
else:
    threading.Thread(target=stop, daemon=True).start()
before = time.monotonic()
status = run(arguments)
sys.stderr.write(f"{time.monotonic() - before}")
sys.stderr.flush()
os._exit(status)
"""


def stopped(number, *arguments, after_seconds=0.0, before_renaming=""):
    """Runs a command that gets a signal after so long, or when it is about to rename a file."""
    when = [str(after_seconds), str(before_renaming), str(int(number))]
    command = [sys.executable, "-c", CHILD, *when, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_an_export_killed_at_any_moment_is_whole_or_not_there(stored, call, tmp_path, form):
    dice = random.Random(os.environ.get("FAULTS_SEED", "7"))
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "rows"
    export = ("export", "--tenant", "acme", "--format", form, *SPAN, target)
    whole = stopped(signal.SIGKILL, *export, after_seconds=600)
    expected, seconds = target.read_bytes(), float(whole.stderr)
    target.unlink()
    done = stopped(signal.SIGKILL, *export, before_renaming=folder / "rows.part")
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in folder.iterdir()] == ["rows.part"]
    for number in range(ROUNDS):
        share = (number + dice.random()) / ROUNDS
        stopped(signal.SIGKILL, *export, after_seconds=share * seconds)
        assert {path.name for path in folder.iterdir()} <= {"rows", "rows.part"}
        if target.exists():
            assert target.read_bytes() == expected
            target.unlink()
    call("verify")
    assert call(*export)["rows"] == PIECES * ROWS
    assert target.read_bytes() == expected
    assert [path.name for path in folder.iterdir()] == ["rows"]
    left_behind = segments(stored)
    call("compact")
    assert not set(left_behind) & set(segments(stored))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_export_that_is_interrupted_leaves_what_was_there(stored, call, tmp_path, number):
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "rows"
    target.write_text("before")
    export = ("export", "--tenant", "acme", "--format", "parquet", *SPAN, target)
    done = stopped(number, *export, before_renaming=folder / "rows.part")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.startswith("fleetcast: interrupted"), done.stderr
    assert [path.name for path in folder.iterdir()] == ["rows"]
    assert target.read_text() == "before"
    assert segments(stored) == []
    call("verify")


def test_a_scan_whose_own_segments_do_not_fit_says_so_and_leaves_nothing(
    small,  # noqa: F811 - the fixture
    tmp_path,
    monkeypatch,
    capsys,
):
    """The store's own disk is full: sorting a long log needs some of it."""
    subprocess.run(["mount", "-o", "remount,size=100m", str(small)], check=True)
    data, target = small / "data", tmp_path / "rows"
    monkeypatch.setenv("FLEETCAST_DATA", str(data))
    assert run(["init"]) == 0
    assert run(["tenant", "create", "acme"]) == 0
    fill(data)
    stat = os.statvfs(small)
    (small / "filler").write_bytes(bytes(stat.f_bavail * stat.f_frsize - (1 << 20)))
    export = ["export", "--tenant", "acme", "--format", "parquet", *SPAN, str(target)]
    capsys.readouterr()
    assert run(export) == 1
    assert "no space is left on the device" in capsys.readouterr().err
    assert list(tmp_path.glob("rows*")) == []
    assert segments(data) == []
    (small / "filler").unlink()
    assert run(export) == 0
    assert pl.scan_parquet(target).select(pl.len()).collect().item() == PIECES * ROWS
    assert run(["verify"]) == 0
