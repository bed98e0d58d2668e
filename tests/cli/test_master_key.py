"""`fleetcast master-key rotate`: the new key opens everything, and the old key opens nothing."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
import time

import pytest

from fleetcast.accounts import KEY_PEPPER
from fleetcast.cli.main import run
from fleetcast.engine import Authenticator, Engine
from fleetcast.errors import StoreDamaged
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from fleetcast.security.handover import HANDOVER_FILE
from fleetcast.security.key_command import PRINTED_BYTES_MAX
from fleetcast.security.master_key import key_id, read_master_key

from .killed import killed_before_each_line

RECORD = '{"measurement":"link","time":"2026-01-01","tags":{"entity_id":"a"},"fields":{"a":1}}\n'
MODULES = [
    "fleetcast.installation.turning",
    "fleetcast.security.certificate",
    "fleetcast.security.handover",
    "fleetcast.security.master_key",
]


@pytest.fixture
def house(call, data, tmp_path):
    """An installation with two tenants, rows, forecasts, a key and a token. Gives key and token."""
    return make_house(call, data, tmp_path / "records.jsonl")


def make_house(call, data, file):
    """Fills an installation, by way of a file of records. Returns an API key and a token."""
    file.write_text(RECORD)
    for name in ("acme", "other"):
        call("tenant", "create", name)
        call("import", "--tenant", name, "--format", "jsonl", file)
    with opened(DataDirectory(data), os.environ) as installation:
        installation.stores.predictions.ensure()
        with installation.stores.predictions.write() as records:
            records.put("rollouts", b"k", b"v")
        token = str(installation.operators.create().text)
    return call("key", "create", "acme", "--scope", "topology:read")["key"], token


def master_key(data):
    return read_master_key(data / "master.key")


def is_whole(data, key, token):
    """Returns true if the key in force opens all that the house has."""
    with opened(DataDirectory(data), os.environ) as installation:
        authenticator = Authenticator(installation.store.records, KEY_PEPPER, "sandbox")
        assert authenticator.identify(key, now=installation.keys.now()).tenant.name == "acme"
        assert installation.operators.holder(token) is not None
        with installation.stores.predictions.read() as records:
            assert records.get("rollouts", b"k") == b"v"
        for tenant in installation.tenants.all():
            assert installation.engine.plane(tenant.account_id, tenant.name).stats().rows == 1
    return run(["verify"]) == 0


def opens_nothing(data, old, call, fail):
    """Returns true if the key `old` opens no plane, no record and no authority's key."""
    engine = Engine(data / "planes", old)
    for path in (data / "planes").iterdir():
        with pytest.raises(StoreDamaged):
            engine.plane(path.name, "acme")
    new = (data / "master.key").read_bytes()
    (data / "master.key").write_text(old.hex())
    assert "master key" in fail("tenant", "list")[0]
    (data / "master.key").write_bytes(new)
    return call("tls", "renew")["new_authority"] is False


def test_the_new_key_opens_everything_and_the_old_key_nothing(call, fail, data, house):
    old = master_key(data)
    done = call("master-key", "rotate")
    assert (done["old_id"], done["new_id"]) == (key_id(old), key_id(master_key(data)))
    assert (done["tenants"], done["unreadable"], done["is_complete"]) == (2, [], True)
    assert (data / "master.key").stat().st_mode & 0o777 == 0o600
    assert not (data / HANDOVER_FILE).exists()
    assert is_whole(data, *house)
    assert opens_nothing(data, old, call, fail)
    assert old.hex() not in (data / "audit.log").read_text()
    assert call("master-key", "rotate")["old_id"] == done["new_id"]
    assert is_whole(data, *house)


def ended(call, data, file):
    """Ends a turn, to the key in `file` if there is one. Returns true if that is complete."""
    if file is not None:
        assert not call("master-key", "rotate", "--to", file)["is_complete"]
        shutil.copy(file, data / "master.key")
    return call("master-key", "rotate")["is_complete"]


@pytest.mark.parametrize("name", [None, "next.key"])
def test_killed_at_any_line_it_goes_on_where_it_was(call, fail, data, house, tmp_path, name):
    old, states, file = master_key(data), set(), name and data / name
    command = ["master-key", "rotate", *(["--to", str(file)] if file else [])]
    for _ in killed_before_each_line(data, tmp_path / "before", MODULES, [command]):
        states.add(((data / HANDOVER_FILE).exists(), master_key(data) == old))
        assert is_whole(data, *house)
        assert ended(call, data, file)
        assert opens_nothing(data, old, call, fail)
        assert is_whole(data, *house)
    assert states >= {(False, True), (True, file is not None)}


def test_a_change_that_is_not_complete_is_told_and_keeps_others_waiting(
    call, fail, data, house, tmp_path
):
    file = tmp_path / "new.key"
    done = call("master-key", "rotate", "--to", file)
    assert not done["is_complete"]
    assert done["file"] == str(file)
    assert is_whole(data, *house)
    found = {finding["check"]: finding for finding in call("doctor")["checks"]}
    assert str(file) in found["change of the master key"]["advice"]
    assert f"by user {os.getuid()} on " in found["change of the master key"]["detail"]
    assert found["data keys"]["detail"].startswith("0 of 2 are under master key")
    assert "master-key rotate" in call("verify")["notes"][0]
    for waiting in (["backup", tmp_path / "backup"], ["tls", "renew"]):
        assert "is not complete" in fail(*waiting)[0]
    assert "end it without --to" in fail("master-key", "rotate", "--to", tmp_path / "another")[0]


def test_a_key_of_ones_own_is_in_force_once_the_settings_name_it(
    call, fail, data, house, tmp_path, monkeypatch
):
    old, file = master_key(data), tmp_path / "new.key"
    file.write_text("ab" * 32)
    call("master-key", "rotate", "--to", file)
    monkeypatch.setenv("FLEETCAST_SECURITY__MASTER_KEY_FILE", str(file))
    assert is_whole(data, *house)
    assert call("master-key", "rotate")["is_complete"]
    assert is_whole(data, *house)
    monkeypatch.delenv("FLEETCAST_SECURITY__MASTER_KEY_FILE")
    assert master_key(data) == old
    assert "master key" in fail("tenant", "list")[0]


def test_a_key_in_force_is_no_new_key(data, fail):
    assert "in force" in fail("master-key", "rotate", "--to", data / "master.key")[0]
    assert not (data / HANDOVER_FILE).exists()


@pytest.mark.usefixtures("house")
def test_a_damaged_key_file_of_a_plane_is_told(call, data):
    damaged, sound = sorted((data / "planes").iterdir())
    (damaged / "key").write_bytes(b"nonsense")
    done = call("master-key", "rotate")
    assert (done["unreadable"], done["tenants"]) == ([damaged.name], 1)
    assert Engine(data / "planes", master_key(data)).plane(sound.name, "acme").stats().rows == 1


@pytest.mark.usefixtures("house")
def test_backups_say_which_key_they_need(call, fail, data, tmp_path):
    old = data.with_name("old.key")
    shutil.copy(data / "master.key", old)
    first, second = tmp_path / "first", tmp_path / "second"
    assert call("backup", first)["master_key"] == key_id(master_key(data))
    call("master-key", "rotate")
    assert "another master key" in fail("backup", first)[0]
    assert call("backup", second)["master_key"] == key_id(master_key(data))
    assert key_id(read_master_key(old)) in fail("verify", "--backup", first)[0]
    for folder, key in ((first, old), (second, data / "master.key")):
        assert call("verify", "--backup", folder, "--master-key", key)["ok"]
    call("restore", first, "--tenant", "acme", "--as", "restored", "--master-key", old)


def test_keys_of_a_backup_that_was_made_after_a_change_stay_good(call, data, house, tmp_path):
    call("master-key", "rotate")
    call("backup", tmp_path / "backup")
    new = tmp_path / "new"
    key_file = data / "master.key"
    (tenant, _) = call("restore", tmp_path / "backup", "--data", new, "--master-key", key_file)[
        "tenants"
    ]
    assert tenant["keys"] == 1
    with opened(DataDirectory(new), os.environ) as installation:
        authenticator = Authenticator(installation.store.records, KEY_PEPPER, "sandbox")
        assert authenticator.identify(house[0], now=installation.keys.now()).tenant.name == "acme"


def answering(listener, answer):
    """Answers each connection, as a service that keeps keys would."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the listener is closed
            return
        with connection:
            connection.sendall(answer())


@pytest.fixture
def kept_elsewhere(data, tmp_path, monkeypatch):
    """A service behind a Unix socket that keeps the master key, and a program that asks it."""
    answers = [(data / "master.key").read_bytes()]
    path = tmp_path / "keys.sock"
    program = tmp_path / "ask.py"
    program.write_text(
        "import socket, sys\n"
        "with socket.socket(socket.AF_UNIX) as asked:\n"
        f"    asked.connect({str(path)!r})\n"
        "    while part := asked.recv(65536):\n"
        "        sys.stdout.write(part.decode())\n"
    )
    (data / "master.key").unlink()
    command = f"{sys.executable} {program}"
    monkeypatch.setenv("FLEETCAST_SECURITY__MASTER_KEY_COMMAND", command)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=answering, args=(listener, lambda: answers[-1]))
        thread.start()
        yield answers
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_program_asks_for_the_key_and_the_key_turns(call, fail, tmp_path, kept_elsewhere):
    call("tenant", "create", "acme")
    assert "--to FILE" in fail("master-key", "rotate")[0]
    file = tmp_path / "new.key"
    assert not call("master-key", "rotate", "--to", file)["is_complete"]
    kept_elsewhere.append(file.read_bytes())
    assert call("master-key", "rotate")["is_complete"]
    assert [tenant["tenant"] for tenant in call("tenant", "list")["tenants"]] == ["acme"]
    kept_elsewhere.append(kept_elsewhere[0])
    assert "master key" in fail("tenant", "list")[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"a" * (PRINTED_BYTES_MAX + 1), "prints over 4096 bytes"),
        (b"", "holds 0 bytes"),
        ("\u00e9".encode(), "does not print text"),
    ],
)
def test_an_answer_that_is_no_key_is_told(fail, kept_elsewhere, answer, said):
    kept_elsewhere.append(answer)
    assert said in fail("tenant", "list")[0]


@pytest.mark.usefixtures("house")
def test_a_damaged_key_file_runs_the_program_once(data, tmp_path, monkeypatch):
    runs, program = tmp_path / "runs", tmp_path / "print-key"
    program.write_text(f"#!/bin/sh\necho >> {runs}\ncat {tmp_path / 'kept.key'}\n")
    program.chmod(0o700)
    (data / "master.key").rename(tmp_path / "kept.key")
    monkeypatch.setenv("FLEETCAST_SECURITY__MASTER_KEY_COMMAND", str(program))
    damaged, sound = sorted(path.name for path in (data / "planes").iterdir())
    (data / "planes" / damaged / "key").write_bytes(b"nonsense")
    with opened(DataDirectory(data), os.environ) as installation:
        runs.unlink()
        begun = time.monotonic()
        for _ in range(5):
            with pytest.raises(StoreDamaged):
                installation.engine.plane(damaged, "acme")
            with pytest.raises(StoreDamaged):
                installation.engine.rewrap_plane(damaged)
        assert installation.engine.plane(sound, "acme").stats().rows == 1
    minutes = int(time.monotonic() - begun) // 60
    assert len(runs.read_text()) <= 1 + minutes


def test_a_program_that_fails_or_is_missing_is_told(fail, monkeypatch):
    for command, said in (("false", "ended with status 1"), ("/none/such", "cannot be run")):
        monkeypatch.setenv("FLEETCAST_SECURITY__MASTER_KEY_COMMAND", command)
        assert said in fail("tenant", "list")[0]
