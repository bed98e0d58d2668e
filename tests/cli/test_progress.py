"""Bars are for people: on a terminal, on standard error, and never in the answer."""

import json
import os
import pty
import subprocess
import sys
import threading

import pytest

from fleetcast.cli.main import run
from fleetcast.cli.progress import Progress
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
def filled(call, tmp_path):
    """Two tenants, of which one has a day of rows."""
    for name in ("acme", "other"):
        call("tenant", "create", name)
    record = {"measurement": "link", "tags": {"entity_id": "a"}, "fields": {"a": 1.5}}
    file = tmp_path / "records.jsonl"
    times = (f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z" for n in range(1440))
    file.write_text("".join(json.dumps(record | {"time": time}) + "\n" for time in times))
    call("import", "--tenant", "acme", "--format", "jsonl", file)


def on_terminal(*arguments):
    """Standard output of a command, and what a terminal shows of its standard error."""
    terminal, error = pty.openpty()
    command = [sys.executable, "-m", "fleetcast", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=error, text=True) as process:
        os.close(error)
        out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # what a terminal without writers answers
            break
        shown += part
    os.close(terminal)
    assert process.returncode == 0
    return out, shown.decode()


@pytest.mark.usefixtures("filled")
def test_a_terminal_shows_a_bar(capsys, tmp_path):
    out, shown = on_terminal("compact", "--json")
    assert [row["busy"] for row in json.loads(out)["tenants"]] == [False, False]
    assert "compacting" in shown
    assert "100%" in shown
    out, shown = on_terminal("verify", "--json")
    assert [row["rows"] for row in json.loads(out)["tenants"]] == [1440, 0]
    assert "verifying" in shown
    assert "100%" in shown
    folder = str(tmp_path / "backup")
    assert "saving" in on_terminal("backup", folder)[1]
    out, shown = on_terminal("verify", "--backup", folder, "--json")
    assert [row["rows"] for row in json.loads(out)["tenants"]] == [1440, 0]
    assert "verifying" in shown
    assert "100%" in shown
    capsys.readouterr()
    assert run(["verify"]) == run(["compact"]) == run(["verify", "--backup", folder]) == 0
    assert capsys.readouterr().err == ""


def test_a_bar_follows_the_work_and_ends_full():
    steps, looked = [], threading.Event()

    def look():
        looked.set()
        return 30

    def work():
        assert looked.wait(PATIENCE_SECONDS)
        return "done"

    bar = Progress(steps.append)
    assert bar.step(work, 100, look) == "done"
    assert sum(steps) == 100
    assert 30 in steps
    assert bar.step(lambda: 1, 0, look) == 1
    assert Progress(None).step(lambda: 2, 100, None) == 2


def test_work_that_fails_fails_as_without_a_bar():
    def work():
        raise ValueError("as it is")

    for advance in (None, lambda _size: None):
        with pytest.raises(ValueError, match="as it is"):
            Progress(advance).step(work, 1, lambda: 0)
