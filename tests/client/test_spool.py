from __future__ import annotations

import pytest

from fleetcast.client.spool import Spool, SpoolFull


def drain(spool):
    while (batch := spool.first()) is not None:
        yield batch.request
        spool.drop_first()


def make(folder, memory=10, disk=100):
    return Spool(folder, memory_bytes_max=memory, disk_bytes_max=disk)


def bodies(count):
    return [f"body-{number}".encode() for number in range(count)]


def test_order_is_kept_from_memory_to_disk(tmp_path):
    spool = make(tmp_path)
    for body in bodies(5):
        spool.add(body)
    assert len(list(tmp_path.glob("*.batch"))) == 4
    assert list(drain(spool)) == bodies(5)
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_sent_comes_first_in_the_next_run(tmp_path):
    first = make(tmp_path)
    for body in bodies(4):
        first.add(body)
    first.drop_first()
    assert first.keep() == 0
    second = make(tmp_path)
    second.add(b"newer")
    assert list(drain(second)) == [*bodies(4)[1:], b"newer"]


def test_memory_is_used_again_when_the_disk_is_empty(tmp_path):
    spool = make(tmp_path)
    for body in bodies(3):
        spool.add(body)
    assert list(drain(spool)) == bodies(3)
    spool.add(b"x")
    assert list(tmp_path.iterdir()) == []


def test_it_is_bounded(tmp_path):
    for folder, room in ((tmp_path, 1 + 2), (None, 1)):
        spool = make(folder, memory=6, disk=12)
        for body in bodies(room):
            spool.add(body)
        with pytest.raises(SpoolFull):
            spool.add(b"more--")
        assert len(spool) == room
        assert list(drain(spool)) == bodies(room)


def test_without_a_folder_the_rest_is_lost_and_told_of():
    spool = make(None)
    spool.add(b"x")
    assert spool.keep() == 1


def test_a_batch_larger_than_memory_is_taken_when_nothing_waits():
    spool = make(None, memory=1)
    spool.add(b"large")
    assert list(drain(spool)) == [b"large"]
