"""More planes than a process keeps open, and planes that nobody needs any more."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest

from fleetcast.engine import Engine, encode_records
from fleetcast.errors import StoreError, StoreMissing, StoreUnavailable

MASTER_KEY = bytes(32)
BODY = encode_records([{"measurement": "link", "time": "2026-01-01", "fields": {"a": 1.0}}])


@pytest.fixture
def engine(tmp_path):
    opened = Engine(tmp_path / "planes", MASTER_KEY, open_max=3)
    yield opened
    opened.close()


@pytest.fixture
def hasty(tmp_path):
    """Every plane is idle."""
    opened = Engine(tmp_path / "planes", MASTER_KEY, open_max=3, idle_seconds=0.0)
    yield opened
    opened.close()


def accounts(engine, count):
    names = [f"a{number}" for number in range(count)]
    for name in names:
        engine.create_plane(name)
    return names


def opened(engine):
    """Accounts of an engine of whose folders this process holds a descriptor."""
    folder, found = engine.folder(""), set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            path = descriptor.readlink()
        except FileNotFoundError:
            continue
        if path.is_relative_to(folder):
            found.add(path.relative_to(folder).parts[0])
    return found


def test_those_used_last_stay_open(engine):
    """Planes were never closed, and a process ended at its descriptors."""
    for name in accounts(engine, 5):
        engine.plane(name, "acme").write_json(BODY)
    assert opened(engine) == {"a2", "a3", "a4"}
    engine.plane("a2", "acme")
    assert engine.plane("a0", "acme").stats().rows == 1
    assert opened(engine) == {"a0", "a2", "a4"}


def test_a_plane_in_use_is_not_closed(engine):
    used, *others = accounts(engine, 6)
    plane = engine.plane(used, "acme")
    for name in others:
        engine.plane(name, "acme")
    plane.write_json(BODY)
    assert engine.plane(used, "acme").stats().rows == 1
    for name in others:
        engine.plane(name, "acme")
    assert used in opened(engine)
    del plane
    engine.close_unused()
    assert used not in opened(engine)
    assert engine.plane(used, "acme").stats().rows == 1


def test_a_plane_whose_rows_are_being_read_is_not_closed(hasty):
    used, *others = accounts(hasty, 6)
    days = [
        {"measurement": "link", "time": f"2026-01-0{day}", "fields": {"a": 1.0}} for day in (1, 2)
    ]
    hasty.plane(used, "acme").write_json(encode_records(days))
    stream = hasty.plane(used, "acme").scan(0, 2**62)
    assert len(next(stream)) == 1
    for name in others:
        hasty.plane(name, "acme")
        hasty.close_unused()
    assert opened(hasty) == {used}
    assert hasty.plane(used, "acme").stats().rows == 2
    assert [len(batch) for batch in stream] == [1]
    del stream
    hasty.close_unused()
    assert opened(hasty) == set()


def test_idle_planes_are_closed(engine, hasty):
    idle, held = accounts(hasty, 2)
    hasty.plane(idle, "acme")
    plane = hasty.plane(held, "acme")
    hasty.close_unused()
    assert opened(hasty) == {held}
    plane.write_json(BODY)
    del plane
    hasty.close_unused()
    assert opened(hasty) == set()
    engine.plane(idle, "acme")
    engine.close_unused()
    assert opened(hasty) == {idle}, "not idle yet"


def test_a_deleted_tenants_plane_is_closed_under_whoever_holds_it(engine, tmp_path):
    """Its key and files were held until the process ended."""
    deleted, kept = accounts(engine, 2)
    plane = engine.plane(deleted, "acme")
    engine.plane(kept, "acme")
    other = Engine(tmp_path / "planes", MASTER_KEY)
    other.destroy_plane(deleted)
    engine.close_unused()
    assert opened(engine) == {kept}
    with pytest.raises(StoreUnavailable):
        plane.stats()
    with pytest.raises(StoreMissing):
        engine.plane(deleted, "acme")


def test_f1_a_plane_is_not_closed_before_what_waits_is_stored(hasty):
    first, *others = accounts(hasty, 6)
    hasty.plane(first, "acme").write_json(BODY, buffer_bytes_max=1 << 20)
    for name in others:
        hasty.plane(name, "acme")
    hasty.close_unused()
    assert opened(hasty) == {first}
    ((account_id, (plane, _)),) = hasty.open_planes.waiting().items()
    hasty.open_planes.flush(account_id, plane)
    del plane
    hasty.close_unused()
    assert opened(hasty) == set()
    assert hasty.plane(first, "acme").stats().rows == 1


@pytest.mark.parametrize("close", ["release", "close", "close_unused"])
def test_f1_a_flush_that_fails_as_a_plane_is_closed_is_told(engine, tmp_path, caplog, close):
    (name,) = accounts(engine, 1)
    engine.plane(name, "acme").write_json(BODY, buffer_bytes_max=1 << 20)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        if close == "release":
            engine.release(name)
        elif close == "close":
            engine.close()
        else:
            (tmp_path / "planes" / name).rename(tmp_path / "away")
            with pytest.raises(StoreMissing):
                engine.plane(name, "acme")
            engine.close_unused()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caplog.messages == ["no space is left on the device"]
    assert opened(engine) == set()


def test_threads_that_need_more_planes_than_may_be_open_disturb_nobody(engine):
    names = accounts(engine, 8)
    failures = []

    def work():
        for _ in range(25):
            for name in names:
                try:
                    engine.plane(name, "acme").write_json(BODY)
                except StoreError as error:
                    failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = {name: engine.plane(name, "acme").stats().rows for name in names}
    assert rows == dict.fromkeys(names, 75)
