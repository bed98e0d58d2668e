"""`fleetcast tenant rekey`: compaction seals everything anew, and then the old key is gone."""

from __future__ import annotations

import os

import pytest

from fleetcast.cli.main import run

from .killed import killed_before_each_line

RECORD = '{"measurement":"link","time":"2026-01-01","tags":{"entity_id":"a"},"fields":{"a":1}}\n'
MODULES = [
    "fleetcast.cli.compact",
    "fleetcast.cli.tenant",
    "fleetcast.engine.planes",
    "fleetcast.installation.rekeying",
]
COMMANDS = [["tenant", "rekey", "acme"], ["compact", "acme"]]


@pytest.fixture
def rows(call, tmp_path):
    """Writes rows of a tenant into segments and log, and returns a call that counts its rows."""
    file = tmp_path / "records.jsonl"
    file.write_text(RECORD)
    call("tenant", "create", "acme")
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    call("compact", "acme")
    call("import", "--tenant", "acme", "--format", "jsonl", file)

    def count():
        found = call("verify")
        assert found["ok"]
        return found["tenants"][0]["rows"]

    return count


def left(call):
    """Returns the bytes that are left under the old key."""
    (held,) = call("stats")["tenants"]
    return held["old_key_bytes"]


def test_compaction_seals_everything_anew_and_drops_the_old_key(call, data, rows, capsys):
    (key,) = data.glob("planes/*/key")
    assert left(call) is None
    first = key.read_bytes()
    done = call("tenant", "rekey", "acme")
    assert done["old_key_bytes"] == left(call) > 0
    assert rows() == 2
    both = key.read_bytes()
    told = f"acme: {left(call)} bytes are left under an old data key"
    assert run(["stats"]) == 0
    assert told in capsys.readouterr().out
    found = {finding["check"]: finding for finding in call("doctor")["checks"]}["tenant acme"]
    assert f"by user {os.getuid()}: {left(call)} bytes are left" in found["detail"]
    assert "fleetcast compact acme" in found["advice"]
    call("tenant", "rekey", "acme")
    assert key.read_bytes() == both, "no third key"
    call("compact", "acme")
    assert left(call) is None
    assert rows() == 2
    # The key file has one key again, and the key of the hashes of names.
    assert len(first) < len(key.read_bytes()) < len(both)
    # The old key alone opens nothing.
    last = key.read_bytes()
    key.write_bytes(first)
    assert not call("verify", status=1)["ok"]
    key.write_bytes(last)
    assert rows() == 2


def test_killed_at_any_line_it_goes_on_where_it_was(call, data, rows, tmp_path):
    states = set()
    for _ in killed_before_each_line(data, tmp_path / "before", MODULES, COMMANDS):
        states.add(left(call) is None)
        assert rows() == 2
        call("tenant", "rekey", "acme")
        call("compact", "acme")
        assert left(call) is None
        assert rows() == 2
    assert states == {True, False}


def test_backups_of_each_moment_are_restored(call, rows, tmp_path):
    folders = []
    for number, command in enumerate([None, ["tenant", "rekey", "acme"], ["compact", "acme"]]):
        if command:
            call(*command)
        folders.append(tmp_path / f"backup{number}")
        call("backup", folders[-1])
        call("backup", tmp_path / "grown")
    for number, folder in enumerate([*folders, tmp_path / "grown"]):
        call("restore", folder, "--tenant", "acme", "--as", f"twin{number}")
    found = {each["tenant"]: each["rows"] for each in call("verify")["tenants"]}
    assert set(found.values()) == {2}
    assert len(found) == 5
    assert rows() == 2
