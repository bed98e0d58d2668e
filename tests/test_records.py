"""Records in a folder, as several processes use them: they grow, and reads wait for nobody."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from fleetcast.engine import Records
from fleetcast.errors import RecordsUnavailable

MIB = 1 << 20
MAP_BYTES = 64 * MIB
CHUNK = b"x" * MIB

COUNTS = """
import sys
from fleetcast.engine import Records
store = Records.in_folder(sys.argv[1], "test 1", ["things"], bytes(32))
for line in sys.stdin:
    with store.begin(write=line == "write\\n") as view:
        if line == "write\\n":
            view.put("things", b"other", b"")
        count = view.count("things")
    print(count, flush=True)
"""

HOLDS = """
import sys
from fleetcast.engine import Records
with Records.in_folder(sys.argv[1], "test 1", ["things"], bytes(32)).begin(write=True) as view:
    view.put("things", b"held", b"")
    print("holds", flush=True)
    sys.stdin.readline()
"""

WRITES_AMID_SIGNALS = """
import signal, sys
from fleetcast.engine import Records
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
print("ready", flush=True)
with Records.in_folder(sys.argv[1], "test 1", ["things"], bytes(32)).begin(write=True) as view:
    view.put("things", b"other", b"")
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "store"
    Records.create(folder, "test 1", ["things"], bytes(32))
    opened = Records.in_folder(folder, "test 1", ["things"], bytes(32))
    yield opened
    opened.close()


def running(program, folder):
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def put(store, *keys):
    for key in keys:
        with store.begin(write=True) as view:
            view.put("things", str(key).encode(), CHUNK)


def entries(store):
    with store.begin(write=False) as view:
        return view.count("things")


@pytest.mark.parametrize("work", ["read", "write"])
def test_it_grows_past_its_map_and_other_processes_follow(store, tmp_path, work):
    """Each of the two takes up what the other made of the map."""
    chunks = MAP_BYTES // MIB + 8

    def asked(line):
        other.stdin.write(f"{line}\n")
        other.stdin.flush()
        return int(other.stdout.readline())

    with running(COUNTS, tmp_path / "store") as other:
        assert asked("read") == 0
        put(store, *range(chunks))
        assert (tmp_path / "store" / "data.mdb").stat().st_size > MAP_BYTES
        assert asked(work) == chunks + (work == "write")
        put(store, "more")
        assert entries(store) == asked("read") == chunks + 1 + (work == "write")
        other.stdin.close()


def test_deleted_records_make_room_for_new_ones(store, tmp_path):
    """Records that come and go do not make the file longer for ever."""
    lengths = []
    for _ in range(8):
        put(store, *range(10))
        with store.begin(write=True) as view:
            for key in range(10):
                view.delete("things", str(key).encode())
        lengths.append((tmp_path / "store" / "data.mdb").stat().st_size)
    assert lengths[-1] < 2 * lengths[0]


def test_reads_of_all_processes_wait_for_no_writer(store, tmp_path):
    """Beside a stopped writer a process that opened the store stood still, and was killed."""
    with running(HOLDS, tmp_path / "store") as writer:
        assert writer.stdout.readline() == "holds\n"
        writer.send_signal(signal.SIGSTOP)
        assert entries(store) == 0
        with running(COUNTS, tmp_path / "store") as reader:
            assert reader.communicate("read\n")[0] == "0\n"
        writer.send_signal(signal.SIGCONT)
        writer.communicate("\n")
    assert entries(store) == 1


def test_a_writer_that_is_killed_leaves_nothing_and_stops_nobody(store, tmp_path):
    with running(HOLDS, tmp_path / "store") as writer:
        assert writer.stdout.readline() == "holds\n"
        waiting = threading.Thread(target=put, args=(store, "next"))
        waiting.start()
        writer.kill()
    waiting.join()
    assert entries(store) == 1


def test_a_signal_does_not_end_the_wait_for_a_writer(store, tmp_path):
    with running(HOLDS, tmp_path / "store") as writer:
        assert writer.stdout.readline() == "holds\n"
        with running(WRITES_AMID_SIGNALS, tmp_path / "store") as waiting:
            assert waiting.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(timeout=0.5)
            writer.communicate("\n")
            assert waiting.wait() == 0
    assert entries(store) == 2


def test_an_iteration_takes_all_records_in_order_whatever_else_is_asked(store):
    keys = [b"%05d" % number for number in range(2_500)]
    with store.begin(write=True) as view:
        for key in reversed(keys):
            view.put("things", key, key)
        view.put("things", b"1", b"")
    with store.begin(write=True) as view:
        seen = []
        for key, value in view.under("things", b"0"):
            assert value == key
            view.delete("things", key)
            seen.append(key)
        assert seen == keys
        assert [*view.under("things", b"")] == [(b"1", b"")]


def test_a_block_that_raises_or_only_reads_changes_nothing(store):
    def interrupted():
        with store.begin(write=True) as view:
            view.put("things", b"a", b"")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with store.begin(write=False) as view, pytest.raises(ValueError, match="only reads"):
        view.put("things", b"a", b"")
    assert entries(store) == 0
    with pytest.raises(RecordsUnavailable, match="closed"):
        view.get("things", b"a")


@pytest.mark.parametrize("before", ["nothing", "holes"])
def test_every_byte_of_the_lock_file_has_its_place_on_disk(store, tmp_path, before):
    path = tmp_path / "store" / "lock.mdb"
    assert entries(store) == 0
    length = path.stat().st_size
    store.close()
    path.unlink()
    if before == "holes":  # as LMDB makes it by itself, and earlier versions left it
        path.touch()
        os.truncate(path, length)
        assert path.stat().st_blocks * 512 < length
    assert entries(store) == 0
    file = path.stat()
    assert file.st_blocks * 512 >= file.st_size == length
