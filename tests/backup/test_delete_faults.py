"""kill -9 and full disks inside of deletes: the rows are there, all of them, or gone, all of them.

`FAULTS=full` makes 60 rounds (`make faults`).
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess

from fleetcast.cli.main import run
from fleetcast.engine import format_time
from fleetcast.errors import StoreFull

from .plane import ROWS, SECOND_NS, START_NS, content, write
from .test_faults import ROUNDS, killed_after, seconds_of, small_disk  # noqa: F401 - a fixture

BATCH_NS = ROWS * 300 * SECOND_NS
START, END = (START_NS + number * BATCH_NS for number in (1, 3))
DELETE = ("delete", "--tenant", "acme", "--start", format_time(START), "--end", format_time(END))


def split(data):
    """All rows of the tenant, and those that a delete leaves."""
    rows = content(data, "acme")[0]
    return rows, [row for row in rows if not START <= row[1] < END]


def test_a_delete_that_is_killed_is_there_whole_or_not_at_all(data, call, tmp_path):
    call("tenant", "create", "acme")
    write(data, "acme", range(4))
    call("compact")
    shutil.copytree(data, tmp_path / "another")
    usual = seconds_of(*DELETE, "--yes", "--data", tmp_path / "another")
    dice, took_place = random.Random(6), 0
    for step in range(ROUNDS):
        write(data, "acme", [1, 2])
        if step % 3 == 0:
            call("compact")
        rows, left = split(data)
        assert len(rows) == len(left) + 2 * ROWS * (2 if step == 0 else 1)
        ended = killed_after(usual * dice.uniform(0, 1.2), *DELETE, "--yes")
        now = split(data)[0]
        assert now == left if ended else now in (rows, left)
        took_place += now == left
        call(*DELETE, "--yes")
        assert split(data)[0] == left
    assert call("verify")["ok"]
    print(f"{ROUNDS} deletes killed, {took_place} took place")


def fill_up(folder):
    """Takes all that is free of the file system of a folder; gives the file that has it."""
    ballast, free = folder / "ballast", os.statvfs(folder)
    ballast.write_bytes(bytes(free.f_bavail * free.f_frsize))
    return ballast


def write_until_full(data, first):
    """Writes batches from number `first` on; gives that of the one that did not fit."""
    number = first
    try:
        while True:
            write(data, "acme", [number])
            number += 1
    except StoreFull:
        return number


def test_a_full_disk_keeps_a_delete_from_being_there_in_part(data, call, capsys, small_disk):  # noqa: F811 - the fixture
    call("tenant", "create", "acme")
    write(data, "acme", range(4))
    call("compact")
    mount = ["mount", "-o", "remount,size=4m", str(small_disk)]
    subprocess.run(mount, check=True)
    new = small_disk / "data"
    shutil.copytree(data, new)
    ballast = fill_up(small_disk)
    number = write_until_full(new, 4)
    rows, left = split(new)
    assert len(rows) == number * ROWS, "what did not fit is not there in part"
    status = run([*DELETE, "--yes", "--data", str(new)])
    assert not status or "space" in capsys.readouterr().err
    assert split(new)[0] == (rows if status else left)
    ballast.unlink()
    call(*DELETE, "--yes", "--data", new)
    assert split(new)[0] == left
    call("compact", "--data", new)
    assert split(new)[0] == left
    assert call("verify", "--data", new)["ok"]
    print(f"a delete on a full disk: {'refused' if status else 'done'}")
