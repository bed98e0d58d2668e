"""Folders of checks: a check that was killed leaves one, and the next check removes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetcast.backup.checking import check

HOLDER = """
import sys
from fleetcast.backup.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "plane").mkdir()
    (folder / "plane" / "key").write_text("sealed")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def started(temporary):
    """A process that holds a folder of a check."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return holder, holder.stdout.readline().strip()


def test_a_check_removes_what_a_killed_one_left_and_nothing_of_one_at_work(
    data, saved, folder, temporary
):
    master_key = bytes.fromhex((data / "master.key").read_text())
    at_work, held = started(temporary)
    killed, left = started(temporary)
    killed.kill()
    killed.communicate()
    other = temporary / "fleetcast-verify-no-folder"
    other.write_text("")
    assert {str(path) for path in temporary.iterdir()} == {held, left, str(other)}
    assert [one.damages for one in check(folder, saved, master_key, ())] == [[], [], []]
    assert {str(path) for path in temporary.iterdir()} == {held, str(other)}
    assert (Path(held) / "plane" / "key").read_text() == "sealed"
    at_work.communicate("")
    assert [path.name for path in temporary.iterdir()] == [other.name]
