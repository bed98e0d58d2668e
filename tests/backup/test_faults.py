"""kill -9 and full disks inside of backups and restores: the backup before stays good, and a
restore that did not end is seen as such and run again.

`FAULTS=full` makes 60 rounds (`make faults`).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys

import pytest

from fleetcast.backup.listing import Listing
from fleetcast.cli.main import run

from .plane import content, write

ROUNDS = 60 if os.environ.get("FAULTS") == "full" else 6
DISK_BYTES = 1 << 19


@pytest.fixture
def small_disk(tmp_path):
    """A file system of half a mebibyte. Whoever may not mount one cannot run these tests."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(folder)]
    subprocess.run(mount, check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


# All is loaded before the clock starts, so that a kill hits the work and not the imports.
CHILD = """
import os, signal, sys, threading, time
import fleetcast.cli.backup, fleetcast.cli.delete, fleetcast.cli.restore
from fleetcast.cli.main import run
seconds = float(sys.argv[1])
kill = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
kill.daemon = True
kill.start()
before = time.monotonic()
status = run(sys.argv[2:])
sys.stderr.write(f"{time.monotonic() - before}")
os._exit(status)
"""


def killed_after(seconds, *arguments):
    """Runs a command and kills it; true where it had ended before."""
    command = [sys.executable, "-c", CHILD, str(seconds), *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode == 0


def seconds_of(*arguments):
    """How long a command takes, once its code is loaded."""
    command = [sys.executable, "-c", CHILD, "1000", *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True).stderr)


def test_a_backup_that_is_killed_leaves_the_one_before(data, call, saved, folder, tmp_path):
    dice = random.Random(3)
    before, number, ended = content(data, "acme"), saved.number, 0
    usual = seconds_of("backup", tmp_path / "another")
    for step in range(ROUNDS):
        write(data, "acme", range(100 + 30 * step, 130 + 30 * step))
        if step % 3 == 0:
            call("compact")
        now = content(data, "acme")
        ended += killed_after(usual * dice.uniform(0, 1.2), "backup", folder)
        listing = Listing.read(folder)
        assert listing.number in {number, number + 1}
        if listing.number > number:
            before = now
        number = listing.number
        assert call("verify", "--backup", folder)["ok"]
        copy = tmp_path / f"copy-{step}"
        call("restore", folder, "--data", copy, "--master-key", data / "master.key")
        assert content(copy, "acme") == before
    assert call("backup", folder)["number"] == number + 1
    assert call("verify", "--backup", folder)["ok"]
    print(f"{ROUNDS} backups killed, {ended} of them after their end, {number - 1} took place")


@pytest.mark.usefixtures("saved")
def test_a_restore_that_is_killed_is_seen_and_run_again(data, call, fail, folder, tmp_path):
    write(data, "acme", range(100, 300))
    call("backup", folder)
    before = content(data, "acme")
    dice = random.Random(4)
    options = ("--master-key", data / "master.key")
    usual = seconds_of("restore", folder, "--data", tmp_path / "another", *options)
    unfinished = 0
    for step in range(ROUNDS):
        new = tmp_path / f"new-{step}"
        arguments = ("restore", folder, "--data", new, *options)
        ended = killed_after(usual * dice.uniform(0, 1), *arguments)
        # The kill may come when nothing is left to do but to say so.
        is_whole = run(["stats", "--data", str(new)]) == 0
        assert is_whole or not ended
        if not is_whole:
            (line,) = fail("stats", "--data", new)
            unfinished += "has not ended" in line
            assert "has not ended" in line or "no data directory" in line
            call(*arguments)
        assert content(new, "acme") == before
        assert call("verify", "--data", new)["ok"]
        shutil.rmtree(new)
    print(f"{ROUNDS} restores killed, {unfinished} of them seen as unfinished")


@pytest.mark.usefixtures("saved")
def test_a_restore_of_a_tenant_that_is_killed_leaves_no_tenant(data, call, folder, tmp_path):
    write(data, "acme", range(100, 300))
    call("backup", folder)
    before = content(data, "acme")
    dice = random.Random(5)
    shutil.copytree(data, tmp_path / "another")
    options = ("--tenant", "acme", "--as", "copy")
    usual = seconds_of("restore", folder, *options, "--data", tmp_path / "another")
    planes = len(list((data / "planes").iterdir()))
    for _ in range(ROUNDS):
        killed_after(usual * dice.uniform(0, 1), "restore", folder, *options, "--data", data)
        if "copy" not in {tenant["tenant"] for tenant in call("tenant", "list")["tenants"]}:
            call("restore", folder, *options)
        assert content(data, "copy") == before
        call("tenant", "delete", "copy", "--yes")
        assert len(list((data / "planes").iterdir())) == planes, "nothing is left of the other one"
    assert call("verify")["ok"]


def test_a_full_disk_keeps_the_backup_before(data, call, fail, small_disk):
    folder = small_disk / "backup"
    call("tenant", "create", "acme")
    write(data, "acme", range(10))
    call("compact")
    write(data, "acme", range(10, 12))
    call("backup", folder)
    before = Listing.read(folder)
    write(data, "acme", range(100, 4_100))
    call("compact")
    (line,) = fail("backup", folder)
    assert "space" in line
    assert Listing.read(folder) == before
    assert call("verify", "--backup", folder)["ok"]
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert used < DISK_BYTES / 2, "what the failed one wrote is gone"


def test_a_full_disk_keeps_a_restore_from_passing_for_one(data, call, fail, folder, small_disk):
    call("tenant", "create", "acme")
    write(data, "acme", range(1_000))
    call("compact")
    call("backup", folder)
    new, key = small_disk / "data", data / "master.key"
    (line,) = fail("restore", folder, "--data", new, "--master-key", key)
    assert "space" in line
    (line,) = fail("stats", "--data", new)
    assert "has not ended" in line
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    call("restore", folder, "--data", new, "--master-key", key)
    assert content(new, "acme") == content(data, "acme")
