"""Planes whose files go away, change or come back under a process that has them open."""

from __future__ import annotations

import os
import shutil

import pytest

from fleetcast.engine import Engine, encode_records
from fleetcast.errors import StoreDamaged, StoreMissing, StoreUnavailable

MASTER_KEY = bytes(32)


@pytest.fixture
def engine(tmp_path):
    opened = Engine(tmp_path / "planes", MASTER_KEY)
    opened.create_plane("a1")
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "planes" / "a1"


def write(engine, count=1):
    record = {"measurement": "link", "time": "2026-01-01", "fields": {"a": 1.0}}
    plane = engine.plane("a1", "acme")
    for _ in range(count):
        plane.write_json(encode_records([record]))
    return plane


def rows(engine):
    return engine.plane("a1", "acme").stats().rows


def test_an_open_plane_stays_open_while_it_grows(engine):
    plane = write(engine, 5)
    write(engine, 50)
    assert rows(engine) == plane.stats().rows == 55


def test_what_is_gone_is_closed_and_opened_when_it_is_back(engine, folder):
    plane = write(engine)
    away = folder.with_name("away")
    folder.rename(away)
    for _ in range(2):
        with pytest.raises(StoreMissing):
            engine.plane("a1", "acme")
    with pytest.raises(StoreUnavailable):
        plane.stats()
    away.rename(folder)
    assert rows(engine) == 1


def test_a_copy_put_in_its_place_is_opened_instead(engine, folder):
    write(engine)
    shutil.copytree(folder, folder.with_name("copy"))
    write(engine)
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)
    assert rows(engine) == 1
    write(engine)
    assert rows(engine) == 2


@pytest.mark.parametrize("size", [0, 1, 4096, 8192, 12_288])
def test_a_file_cut_short_is_damage_until_it_is_whole(engine, folder, size):
    write(engine, 20)
    assert rows(engine) == 20
    path = folder / "plane.mdb"
    whole = path.read_bytes()
    os.truncate(path, size)
    for _ in range(3):
        with pytest.raises(StoreDamaged):
            engine.plane("a1", "acme")
    path.write_bytes(whole)
    assert rows(engine) == 20


def test_only_the_store_that_failed_is_released(engine):
    failed = write(engine)
    engine.release("a1", failed)
    opened = engine.plane("a1", "acme")
    engine.release("a1", failed)
    assert opened.stats().rows == 1
    engine.release("unknown")


def test_another_key_is_another_plane(engine, folder):
    write(engine)
    engine.create_plane("a2")
    shutil.copy(folder.with_name("a2") / "key", folder / "key")
    with pytest.raises(StoreDamaged):
        engine.plane("a1", "acme")
