"""`verify`: sound stores pass, and a damaged byte anywhere is named."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine, Planes, Verified, encode_records, format_time
from fleetcast.errors import StoreMissing

from .strategies import BASE_NS, NOW_NS

if TYPE_CHECKING:
    from pathlib import Path

MASTER_KEY = bytes(range(32))
SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments with statistics in two days, a checkpoint, and something in the log."""
    directory = tmp_path_factory.mktemp("planes")
    engine = Engine(directory, MASTER_KEY)
    engine.create_plane("a1")
    plane = engine.plane("a1", "acme")
    for batch in range(3):
        records = [
            {
                "measurement": "link",
                "time": format_time(BASE_NS + at * SECOND_NS),
                "tags": {"entity_id": f"e{at % 2}"},
                "fields": {"snr_db": at / 10, "up": at % 3 == 0, "mode": f"m{at % 5}"},
            }
            for at in range(120)
        ]
        plane.write_json(encode_records(records), now_ns=NOW_NS)
        if batch < 2:
            plane.compact(whole=True, now_ns=NOW_NS)
    engine.close()
    return directory / "a1"


def verified(folder: Path, master_key: bytes = MASTER_KEY) -> Verified:
    return Planes.in_directory(folder.parent).verify(folder.name, master_key)


def verify(folder: Path) -> list[str]:
    return verified(folder).damages


def test_a_sound_store_passes_and_is_left_as_it_is(stored) -> None:
    def content() -> dict[str, bytes]:
        files = [path for path in stored.rglob("*") if path.is_file()]
        return {path.name: path.read_bytes() for path in files if "lock" not in path.name}

    before = content()
    found = verified(stored)
    assert (found.damages, found.rows, found.values) == ([], 360, 1080)
    assert (found.segments, found.blocks) == (2, 1)
    assert content() == before


@pytest.fixture
def copy(stored, tmp_path) -> Path:
    return shutil.copytree(stored, tmp_path / stored.name)


def test_every_byte_of_every_segment_is_looked_at(copy) -> None:
    for path in (copy / "segments").iterdir():
        whole = path.read_bytes()
        for at in range(0, len(whole), 7):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            (damage,) = verify(copy)
            assert path.name in damage
        for wrong in (whole[:-1], whole + b"\0", b""):
            path.write_bytes(wrong)
            assert verify(copy)
        path.write_bytes(whole)
    assert verify(copy) == []


def test_a_segment_that_is_gone_or_another_is_named(copy) -> None:
    """A part of one segment does not pass for a part of another."""
    paths = sorted((copy / "segments").iterdir(), key=lambda path: path.stat().st_size)
    away = copy / "away"
    for path in paths:
        path.rename(away)
        assert any(path.name in damage for damage in verify(copy))
        shutil.copy(paths[0] if path is not paths[0] else paths[1], path)
        assert any(path.name in damage for damage in verify(copy))
        away.replace(path)
    assert verify(copy) == []


def test_bytes_of_the_plane_file_that_matter_are_named(copy) -> None:
    """Log, names, manifest and catalog: no flip is taken for sound data or raises."""
    path = copy / "plane.mdb"
    whole = path.read_bytes()
    reported = 0
    for at in range(8192, len(whole), 61):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        found = verified(copy)
        # A flip in a free page, or in LMDB's own slack, may stay unseen: then all rows are there.
        assert found.damages or found.rows == 360
        reported += bool(found.damages)
    assert reported > 10


def test_bytes_of_the_log_are_named(copy) -> None:
    """A flip costs an open store nothing that it does not tell of."""
    (path,) = (copy / "log").iterdir()
    whole = path.read_bytes()
    for at in range(0, len(whole.rstrip(b"\0")), 13):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        assert verify(copy)
    path.write_bytes(whole)
    assert verify(copy) == []


def test_another_key_or_no_store_at_all(copy, tmp_path) -> None:
    assert verified(copy, bytes(32)).damages
    with pytest.raises(StoreMissing):
        verify(tmp_path / "nothing")
    (copy / "key").unlink()
    with pytest.raises(StoreMissing):
        verify(copy)
