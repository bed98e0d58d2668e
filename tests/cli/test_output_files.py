"""Every FILE that a command writes: a file is whole or not there, a device stays what it is."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from fleetcast.errors import OperatorError
from fleetcast.output_file import output_file
from fleetcast.transfer.resume import Resume

SPAN = ("--start", "2026-01-01", "--end", "2026-01-02")
RECORD = {"measurement": "link", "time": "2026-01-01T00:00:00Z", "tags": {}, "fields": {"n": 1.0}}
NULL = os.makedev(1, 3)
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices and gives files away")


@pytest.fixture
def file(tmp_path, call):
    """Two records for an import, of which one is stored, and one is rejected."""
    call("tenant", "create", "acme")
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(RECORD) + "\n{\n")
    return file


def export(target):
    return ("export", "--tenant", "acme", "--format", "jsonl", *SPAN, target)


def reject(file, target):
    options = ("--format", "jsonl", "--rejects", target, "--max-rejects", "1")
    return ("import", "--tenant", "acme", *options, file)


@pytest.fixture(params=["export", "rejects"])
def write(request, call, file):
    """Runs a command that writes one line into a file."""
    if request.param == "rejects":
        return lambda target: call(*reject(file, target))
    call(*reject(file, "-.rejects"))
    return lambda target: call(*export(target))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@root
def test_a_device_is_written_into_and_stays_a_device(write, tmp_path):
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, NULL)
    write(device)
    assert (stat.S_ISCHR(device.stat().st_mode), device.stat().st_rdev) == (True, NULL)


def test_a_pipe_is_written_into(write, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(pipe.read_text().splitlines()))
    reader.start()
    write(pipe)
    reader.join()
    assert (len(lines), pipe.is_fifo()) == (1, True)


def test_a_pipe_that_only_a_descriptor_names_is_written_into(write):
    """`/dev/stdout` and `>(command)`: the name that the link has is none in a folder."""
    reading, writing = os.pipe()
    try:
        write(f"/dev/fd/{writing}")
    finally:
        os.close(writing)
    with os.fdopen(reading) as lines:
        assert len(lines.readlines()) == 1


def test_a_socket_is_written_into(write, tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        write(path)
        with listener.accept()[0] as connection, connection.makefile() as lines:
            assert len(lines.readlines()) == 1
    assert path.is_socket()


def test_a_link_is_followed(write, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    write(link)
    assert link.is_symlink()
    assert len((tmp_path / "target").read_text().splitlines()) == 1


@pytest.mark.usefixtures("file")
def test_a_directory_is_refused(fail, tmp_path):
    (line,) = fail(*export(tmp_path))
    assert line == f"fleetcast: {tmp_path} is a directory: name a file"


@root
@pytest.mark.usefixtures("file")
def test_another_users_file_is_refused_and_stays_as_it_is(fail, tmp_path):
    target = tmp_path / "of-another"
    target.write_text("theirs")
    os.chown(target, 12_345, 12_345)
    (line,) = fail(*export(target))
    assert "belongs to another user (uid 12345)" in line
    assert (target.read_text(), target.stat().st_uid) == ("theirs", 12_345)
    assert not target.with_name("of-another.part").exists()


def test_a_replaced_file_keeps_its_rights(tmp_path):
    path = tmp_path / "private"
    path.touch(mode=0o600)
    with output_file(path) as file:
        file.write(b"new")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (0o600, b"new")


def test_a_second_writer_is_refused_and_the_first_ones_file_is_whole(tmp_path):
    """The file was emptied before the second was refused: the first ended well, with zeros."""
    path = tmp_path / "export"
    with output_file(path) as first:
        first.write(b"first, ")
        first.flush()
        with pytest.raises(OperatorError, match="another command"), output_file(path):
            pass
        first.write(b"whole")
    assert path.read_bytes() == b"first, whole"
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_link_planted_beside_the_file_is_not_written_through(tmp_path):
    """As root it would have replaced what another user's link beside the file names."""
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "export.part").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"), output_file(tmp_path / "export"):
        pass
    assert victim.read_text() == "theirs"


def test_a_second_name_planted_beside_the_file_is_not_written_through(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "export"
    victim.write_text("theirs")
    (tmp_path / "export.part").hardlink_to(victim)
    with pytest.raises(OperatorError, match=r"export\.part has a second name"), output_file(path):
        pass
    assert (victim.read_text(), path.exists()) == ("theirs", False)


def test_a_pipe_planted_beside_the_file_does_not_stop_a_command(tmp_path):
    os.mkfifo(tmp_path / "export.part")
    program = "import sys; from pathlib import Path; from fleetcast.output_file import output_file"
    program += "; output_file(Path(sys.argv[1])).__enter__()"
    command = [sys.executable, "-c", program, str(tmp_path / "export")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert "export.part is no regular file" in done.stderr


@root
def test_another_users_file_beside_the_file_gets_nothing(tmp_path):
    """Its owner could have read and changed what root writes."""
    part = tmp_path / "export.part"
    part.touch()
    part.chmod(0o666)
    os.chown(part, 12_345, 12_345)
    with (
        pytest.raises(OperatorError, match=r"export\.part belongs to another user \(uid 12345\)"),
        output_file(tmp_path / "export") as file,
    ):
        file.write(b"secret")
    assert [path.name for path in tmp_path.iterdir()] == ["export.part"]


@root
def test_a_file_in_a_folder_that_cannot_be_read_is_written():
    """The file was there, and the command failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o733)
        os.seteuid(65_534)
        try:
            with output_file(folder / "export") as file:
                file.write(b"whole")
        finally:
            os.seteuid(0)
        assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [
            ("export", b"whole")
        ]


def test_two_imports_at_once_do_not_share_their_place(fail, file, tmp_path):
    """Both stored every record, and both ended with status 0."""
    going_on = tmp_path / "place"
    first = Resume(going_on, None, {})
    for _ in range(2):
        line = fail(*reject(file, "rejects"), "--resume", going_on)[0]
        assert line == f"fleetcast: another import is using {going_on}: wait until it ends"
        first.save()  # which replaces the file
    first.close()
    with pytest.raises(OperatorError, match="another import"):
        Resume(going_on, None, {"files": []})


@root
def test_an_import_keeps_no_place_in_a_device(fail, file, tmp_path):
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, NULL)
    (line,) = fail(*reject(file, "rejects"), "--resume", device)
    assert "no regular file" in line
    assert device.stat().st_rdev == NULL


@root
def test_an_import_that_cannot_note_its_place_stores_nothing(call, fail, file, tmp_path):
    """Another user's FILE was refused only once batches were stored."""
    place = tmp_path / "place"
    call(*reject(file, "rejects"), "--resume", place)
    state = json.loads(place.read_text())
    state |= {"is_done": False, "noted": [0, 0], "stored": [0, 0], "report": {}}
    place.write_text(json.dumps(state))
    os.chown(place, 12_345, 12_345)
    (line,) = fail(*reject(file, "rejects"), "--resume", place)
    assert f"{place} belongs to another user (uid 12345)" in line


def test_a_place_whose_folder_takes_no_file_is_refused_before_anything_is_stored(tmp_path):
    place = tmp_path / "place"
    first = Resume(place, None, {})
    first.state.noted = first.stored = (0, 5)
    first.save()
    first.close()
    (tmp_path / "place.part").mkdir()
    plane = SimpleNamespace(cursor=lambda _key: (5).to_bytes(8, "little"))
    with pytest.raises(IsADirectoryError):
        Resume(place, plane, {})


def test_a_place_that_cannot_be_made_durable_leaves_no_descriptor_open(tmp_path, monkeypatch):
    resume = Resume(tmp_path / "place", None, {})

    def fail(_descriptor):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "fsync", fail)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - names, not paths
    with pytest.raises(OSError, match="no room"):
        resume.save()
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208 - names, not paths
    resume.close()
