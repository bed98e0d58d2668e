from __future__ import annotations

import os

import pytest

from fleetcast.client.spool import Spool, SpoolFull, SpoolInUse
from fleetcast.protobuf import delimited


def drain(spool):
    while (batch := spool.first()) is not None:
        yield batch.request
        spool.drop_first()


def make(folder, memory=10, disk=100):
    return Spool(folder, memory_bytes_max=memory, disk_bytes_max=disk)


def request(text):
    """A request of one record: six bytes for four letters."""
    return delimited(1, text)


def bodies(count):
    return [request(f"b-{number:02}") for number in range(count)]


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
    assert first.close() == 0
    second = make(tmp_path)
    second.add(request("newer"))
    assert list(drain(second)) == [*bodies(4)[1:], request("newer")]


def test_memory_is_used_again_when_the_disk_is_empty(tmp_path):
    spool = make(tmp_path)
    for body in bodies(3):
        spool.add(body)
    assert list(drain(spool)) == bodies(3)
    spool.add(request("x"))
    assert list(tmp_path.iterdir()) == []


def test_it_is_bounded(tmp_path):
    for folder, room in ((tmp_path, 1 + 2), (None, 1)):
        spool = make(folder, memory=6, disk=12)
        for body in bodies(room):
            spool.add(body)
        with pytest.raises(SpoolFull):
            spool.add(request("more"))
        assert len(spool) == room
        assert list(drain(spool)) == bodies(room)


def test_without_a_folder_the_rest_is_lost_and_told_of():
    spool = make(None)
    spool.add(request("x"))
    assert spool.close() == 1


def test_a_batch_larger_than_memory_is_taken_when_nothing_waits():
    spool = make(None, memory=1)
    spool.add(request("large"))
    assert list(drain(spool)) == [request("large")]


def test_what_is_set_aside_takes_its_part_of_the_room(tmp_path):
    spool = make(tmp_path, memory=0, disk=12)
    for each in bodies(3):
        spool.add(each)
    (bad, _) = sorted(tmp_path.iterdir())
    bad.write_bytes(b"\xff" * 6)
    assert list(drain(spool)) == [bodies(3)[0], bodies(3)[2]]
    assert spool.unreadable_count == 1
    spool.close()
    for _ in range(2):
        again = make(tmp_path, memory=0, disk=12)
        for each in bodies(2):
            again.add(each)
        with pytest.raises(SpoolFull):
            again.add(request("more"))
        assert list(drain(again)) == bodies(2)
        again.close()
    bad.with_suffix(".unreadable").unlink()
    last = make(tmp_path, memory=0, disk=12)
    for each in bodies(3):
        last.add(each)


def test_what_is_left_of_the_oldest_batch_takes_its_place(tmp_path):
    for memory in (100, 0):
        spool = make(tmp_path, memory)
        for each in bodies(3):
            spool.add(each)
        spool.shorten_first(request("a"))
        assert spool.close() == 0
        rest = make(tmp_path)
        assert list(drain(rest)) == [request("a"), *bodies(3)[1:]]
        rest.close()


def test_a_second_writer_on_a_spool_is_refused(tmp_path):
    """Two writers numbered their batches alike, and each lost those of the other."""
    first = make(tmp_path, memory=0)
    with pytest.raises(SpoolInUse, match="folder of its own"):
        make(tmp_path)
    for each in bodies(2):
        first.add(each)
    assert list(drain(first)) == bodies(2)
    first.close()
    assert list(drain(make(tmp_path))) == []


def test_a_closed_spool_is_free_though_a_forked_process_has_its_descriptor(tmp_path):
    """The lock stayed with the child, and the folder could not be used again."""
    first = make(tmp_path)
    inherited = os.dup(first._held)  # of the same open file, as a fork makes it
    first.close()
    assert make(tmp_path).close() == 0
    os.close(inherited)


def test_a_spool_that_cannot_be_read_does_not_stay_locked(tmp_path):
    bad = tmp_path / "00000000000000000001.batch"
    bad.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        make(tmp_path)
    bad.unlink()
    make(tmp_path).close()


def test_what_cannot_be_kept_is_told_of(tmp_path):
    folder = tmp_path / "spool"
    spool = make(folder, memory=100)
    for each in bodies(3):
        spool.add(each)
    folder.rmdir()
    assert spool.close() == 3
    folder.mkdir()
    assert spool.close() == 0
    assert list(drain(make(folder))) == bodies(3)
