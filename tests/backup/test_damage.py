"""Any damage of a backup is found, and no damaged one is restored."""

from __future__ import annotations

import os
import random
import shutil

from fleetcast.backup.checking import check
from fleetcast.backup.listing import LISTING_FILE, Listing
from fleetcast.errors import OperatorError

from .plane import files_of

FLIPS = 1_000


def damages(folder, master_key=None):
    try:
        listing = Listing.read(folder)
        return [line for one in check(folder, listing, master_key, ()) for line in one.damages]
    except OperatorError as error:
        return [str(error)]


def own_copy(saved, folder, tmp_path):
    """A backup that shares no file with the store."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    return copy, files_of(copy, saved)


def test_a_thousand_bit_flips_are_found(saved, folder, tmp_path):
    copy, files = own_copy(saved, folder, tmp_path)
    assert damages(copy) == []
    dice = random.Random(14)
    ends, sizes = [], 0
    for path in files:
        sizes += path.stat().st_size
        ends.append(sizes)
    found = 0
    for _ in range(FLIPS):
        at, bit = dice.randrange(sizes), dice.randrange(8)
        path = next(path for path, end in zip(files, ends, strict=True) if at < end)
        offset = at - (ends[files.index(path)] - path.stat().st_size)
        flip(path, offset, bit)
        found += bool(damages(copy))
        flip(path, offset, bit)
    print(f"{FLIPS} bit flips in {sizes} bytes of {len(files)} files: {found} found")
    assert found == FLIPS
    assert damages(copy) == []


def flip(path, offset, bit):
    with path.open("r+b") as file:
        (byte,) = os.pread(file.fileno(), 1, offset)
        os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), offset)


def test_a_missing_or_longer_file_is_found(saved, folder, tmp_path):
    copy, files = own_copy(saved, folder, tmp_path)
    for path in files:
        sound = path.read_bytes()
        path.unlink()
        assert damages(copy), path
        path.write_bytes(sound + b"\0")
        assert damages(copy), path
        path.write_bytes(sound)
    assert damages(copy) == []


def test_damage_that_the_hashes_do_not_show_is_found_when_it_is_opened(
    data, call, saved, folder, tmp_path
):
    """The store was damaged before its backup, which is what it was made of."""
    (acme, _) = saved.tenants
    segments = data / "planes" / acme.record.account_id / "segments"
    for path in segments.iterdir():
        # Another file, since the backup has the sound one.
        stored = bytearray(path.read_bytes())
        stored[len(stored) // 2] ^= 1
        path.unlink()
        path.write_bytes(stored)
    another = tmp_path / "another"
    call("backup", another)
    assert call("verify", "--backup", folder)["ok"]
    found = call("verify", "--backup", another, status=1)
    assert {line.split(":")[0] for line in found["damages"]} == {"acme"}
    assert call("verify", "--backup", another, "idle")["ok"]


def test_no_damaged_backup_is_restored(data, call, fail, saved, folder, tmp_path):
    copy, files = own_copy(saved, folder, tmp_path)
    key = data / "master.key"
    for number, path in enumerate(path for path in files if path.name != "server.pem"):
        flip(path, path.stat().st_size // 2, 3)
        new = tmp_path / f"new-{number}"
        (line,) = fail("restore", copy, "--data", new, "--master-key", key)
        assert "amaged" in line or "backup" in line, line
        if new.exists():
            (line,) = fail("stats", "--data", new)
            assert "has not ended" in line
        flip(path, path.stat().st_size // 2, 3)
        assert len(call("restore", copy, "--data", new, "--master-key", key)["tenants"]) == 2
    assert (copy / LISTING_FILE).read_bytes() == (folder / LISTING_FILE).read_bytes()


def test_a_backup_of_a_later_format_is_refused(saved, folder, monkeypatch):
    monkeypatch.setattr("fleetcast.backup.listing.FORMAT", 4)
    later = saved.encode()
    monkeypatch.undo()
    (folder / LISTING_FILE).write_bytes(later)
    assert "is of format 4" in damages(folder)[0]
