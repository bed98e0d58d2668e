"""A small environment: it grows, its reads wait for nobody, and a full disk does not end it."""

import os
import select
import subprocess
import sys
import threading

import pytest

from fleetcast.lmdb_store import LmdbStore, LmdbUnavailable
from tests.waiting import PATIENCE_SECONDS

MIB = 1 << 20
MAP_BYTES = 64 * MIB
CHUNK = b"x" * MIB

COUNTS = """
import sys
from pathlib import Path
from fleetcast.lmdb_store import LmdbStore
store = LmdbStore(Path(sys.argv[1]), ("things",), b"test 1")
for line in sys.stdin:
    with store.transaction(write=line == "write\\n") as view:
        if line == "write\\n":
            view.transaction.put(b"other", b"", db=view.tables["things"])
        print(view.transaction.stat(view.tables["things"])["entries"], flush=True)
"""


OPENS = """
import sys, threading
from pathlib import Path
from fleetcast.lmdb_store import LmdbStore
store = LmdbStore(Path(sys.argv[1]), ("things",), b"test 1")
ask = lambda: store.ask(lambda view: view.transaction.stat(view.tables["things"])["entries"])
opens = threading.Thread(target=lambda: print(ask(), flush=True))
opens.start()
opens.join(0.5)  # until then it waits for the writer
print("others run", flush=True)
"""

READS_WHEN_TOLD = """
import sys
from pathlib import Path
from fleetcast.lmdb_store import LmdbStore
store = LmdbStore(Path(sys.argv[1]), ("things",), b"test 1")
store.open_ahead()
print("open", flush=True)
sys.stdin.readline()
print(store.ask(lambda view: view.transaction.stat(view.tables["things"])["entries"]), flush=True)
"""


@pytest.fixture
def store(tmp_path):
    opened = LmdbStore(tmp_path / "store", ("things",), b"test 1")
    opened.create()
    yield opened
    opened.close()


def put(store, *keys):
    for key in keys:
        with store.transaction(write=True) as view:
            view.transaction.put(str(key).encode(), CHUNK, db=view.tables["things"])


def entries(store):
    return store.ask(lambda view: view.transaction.stat(view.tables["things"])["entries"])


@pytest.mark.parametrize("work", ["read", "write"])
def test_it_grows_past_its_map_and_other_processes_follow(store, tmp_path, work):
    """Each of the two takes up what the other made of the map."""
    chunks = MAP_BYTES // MIB + 8
    other = subprocess.Popen(
        [sys.executable, "-c", COUNTS, str(tmp_path / "store")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def asked(line):
        other.stdin.write(f"{line}\n")
        other.stdin.flush()
        return int(other.stdout.readline())

    with other:
        assert asked("read") == 0
        put(store, *range(chunks))
        assert (tmp_path / "store" / "data.mdb").stat().st_size > MAP_BYTES
        assert asked(work) == chunks + (work == "write")
        put(store, "more")
        assert entries(store) == asked("read") == chunks + 1 + (work == "write")
        other.stdin.close()


def test_a_change_larger_than_the_map_is_undone_and_finds_room_when_it_is_tried_again(store):
    chunks = range(MAP_BYTES // MIB)

    def change():
        with store.transaction(write=True) as view:
            for key in chunks:
                view.transaction.put(str(key).encode(), CHUNK, db=view.tables["things"])

    with pytest.raises(LmdbUnavailable, match="full: try again"):
        change()
    assert entries(store) == 0
    change()
    assert entries(store) == len(chunks)


def test_damaged_files_are_named_in_our_words(tmp_path):
    (tmp_path / "data.mdb").write_bytes(b"x" * 8_192)
    with pytest.raises(LmdbUnavailable, match=r"^data\.mdb is damaged, or of another program$"):
        entries(LmdbStore(tmp_path, ("things",), b"test 1"))


def test_what_the_system_refuses_is_named_as_the_system_names_it(store):
    with (
        pytest.raises(LmdbUnavailable, match=r"^Permission denied$"),
        store.transaction(write=False) as view,
    ):
        view.transaction.put(b"a", b"")  # not in a transaction that reads


def test_deleted_records_make_room_for_new_ones(store, tmp_path):
    """Records that come and go do not make the file longer for ever."""
    lengths = []
    for _ in range(8):
        put(store, *range(10))
        with store.transaction(write=True) as view:
            for key in range(10):
                view.transaction.delete(str(key).encode(), db=view.tables["things"])
        lengths.append((tmp_path / "store" / "data.mdb").stat().st_size)
    assert lengths[-1] < 2 * lengths[0]


class Writer(threading.Thread):
    """Holds a write transaction open until it may end it."""

    def __init__(self, store):
        super().__init__()
        self.store = store
        self.began, self.may_end = threading.Event(), threading.Event()
        self.start()

    def run(self):
        with self.store.transaction(write=True) as view:
            view.transaction.put(b"held", b"", db=view.tables["things"])
            self.began.set()
            assert self.may_end.wait(60)


def test_a_read_waits_for_no_write(store):
    writer = Writer(store)
    assert writer.began.wait(60)
    assert entries(store) == 0
    writer.may_end.set()
    writer.join()
    assert entries(store) == 1


def test_a_process_that_opens_the_store_goes_on_while_another_writes(store, tmp_path):
    """It stood still as a whole, and was killed for it, beside a writer that had been stopped."""
    with store.transaction(write=True) as view:
        view.transaction.put(b"held", b"", db=view.tables["things"])
        opening = subprocess.Popen(
            [sys.executable, "-c", OPENS, str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            text=True,
        )
        first, _, _ = select.select([opening.stdout], [], [], PATIENCE_SECONDS)
        assert first
        assert opening.stdout.readline() == "others run\n"
    assert opening.communicate()[0] == "1\n"
    assert opening.returncode == 0


def test_what_was_opened_ahead_is_read_while_another_process_writes(store, tmp_path):
    reader = subprocess.Popen(
        [sys.executable, "-c", READS_WHEN_TOLD, str(tmp_path / "store")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout.readline() == "open\n"
    with store.transaction(write=True) as view:
        view.transaction.put(b"held", b"", db=view.tables["things"])
        assert reader.communicate("read\n", timeout=PATIENCE_SECONDS)[0] == "0\n"


def test_files_that_were_replaced_are_opened_when_the_last_transaction_has_ended(store, tmp_path):
    writer = Writer(store)
    assert writer.began.wait(60)
    (tmp_path / "store").rename(tmp_path / "away")
    LmdbStore(tmp_path / "store", ("things",), b"test 1").create()
    counted = []
    reader = threading.Thread(target=lambda: counted.append(entries(store)))
    reader.start()
    writer.may_end.set()
    writer.join()
    reader.join(60)
    assert counted == [0]


@pytest.mark.parametrize("before", ["nothing", "holes"])
def test_every_byte_of_the_lock_file_has_its_place_on_disk(store, tmp_path, before):
    path = tmp_path / "store" / "lock.mdb"
    length = path.stat().st_size
    path.unlink()
    if before == "holes":  # as LMDB makes it by itself, and earlier versions left it
        path.touch()
        os.truncate(path, length)
        assert path.stat().st_blocks * 512 < length
    assert entries(store) == 0
    file = path.stat()
    assert file.st_blocks * 512 >= file.st_size == length
