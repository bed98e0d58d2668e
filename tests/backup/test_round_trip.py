"""A restored installation answers as the saved one did at the instant of its backup."""

from __future__ import annotations

import json
import shutil
import stat
import tomllib
from contextlib import closing

import pytest

from fleetcast.accounts import ControlStore
from fleetcast.backup.listing import Listing
from fleetcast.engine import Engine, UsageRecord
from fleetcast.security.master_key import read_master_key
from tests.golden.make import HERE, MASTER_KEY
from tests.golden.test_golden import STORES, assert_answers

from .plane import ROWS, content, files_of, open_plane, write


def test_each_backup_of_a_growing_store_is_restored_as_it_was(data, call, folder, tmp_path):
    """Log, compactions, merges and retention come and go between the backups into one folder."""
    call("tenant", "create", "acme", "--retention", "30000d")
    steps = ["nothing", "write", "write", "compact", "nothing", "write", "compact", "write"]
    written = 0
    for number, step in enumerate([*steps, "retain"], 1):
        if step == "write":
            write(data, "acme", range(written, written + 3))
            written += 3
        elif step == "compact":
            call("compact")
        elif step == "retain":
            call("tenant", "set", "acme", "--retention", "20000d")
        done = call("backup", folder)
        (tenant,) = done["tenants"]
        assert (done["number"], tenant["rows"]) == (number, written * ROWS)
        assert call("verify", "--backup", folder)["ok"]
        copy = tmp_path / f"copy-{number}"
        (restored,) = call("restore", folder, "--data", copy, "--master-key", data / "master.key")[
            "tenants"
        ]
        assert {name: restored[name] for name in tenant} == tenant
        assert content(copy, "acme") == content(data, "acme")
        assert len(content(copy, "acme")[0]) == written * ROWS
        (verified,) = call("verify", "--data", copy)["tenants"]
        assert (verified["damages"], verified["rows"]) == ([], written * ROWS)
    named = {path for path in folder.rglob("*") if path.is_file()} - {folder / "backup.lock"}
    assert named == set(files_of(folder, Listing.read(folder))), "nothing else is left over"


def test_an_installation_comes_back_whole(data, call, saved, folder, tmp_path):
    tenants, keys = call("tenant", "list"), call("key", "list", "acme")
    authority = (data / "tls" / "ca.pem").read_bytes()
    settings = (data / "fleetcast.toml").read_text()
    before = content(data, "acme")
    (tmp_path / "master.key").write_bytes((data / "master.key").read_bytes())
    shutil.rmtree(data)
    data.mkdir()
    shutil.copy(tmp_path / "master.key", data)
    restored = call("restore", folder)["tenants"]
    assert [(one["tenant"], one["keys"]) for one in restored] == [("acme", 1), ("idle", 0)]
    assert (call("tenant", "list"), call("key", "list", "acme")) == (tenants, keys)
    assert content(data, "acme") == before
    assert (data / "tls" / "ca.pem").read_bytes() == authority, "clients go on trusting it"
    assert (data / "fleetcast.toml").read_text() == settings
    assert tomllib.loads(settings)["service"]["environment"] == "sandbox"
    events = [json.loads(line)["event"] for line in (data / "audit.log").read_text().splitlines()]
    assert events == ["tenant created", "tenant created", "key created", "backup restored"]
    write(data, "acme", [8])
    call("compact")
    assert call("verify")["ok"]
    assert call("backup", folder)["number"] == saved.number + 1


def test_a_tenant_is_added_under_another_name(data, call, fail, saved, folder):
    before = content(data, "acme")
    write(data, "acme", [9])
    (copy,) = call("restore", folder, "--tenant", "acme", "--as", "yesterday")["tenants"]
    assert (copy["tenant"], copy["saved_as"], copy["keys"]) == ("yesterday", "acme", 0)
    shown, original = call("tenant", "show", "yesterday"), call("tenant", "show", "acme")
    assert shown["account_id"] != original["account_id"]
    same = ("plan", "retention", "live_ingest", "status")
    assert [shown[name] for name in same] == [original[name] for name in same]
    assert content(data, "yesterday") == before != content(data, "acme")
    assert call("key", "list", "yesterday") == call("key", "list", "idle")
    call("tenant", "delete", "acme", "--yes")
    assert content(data, "yesterday") == before
    assert "exists already" in fail("restore", folder, "--tenant", "idle")[0]
    assert "no tenant other" in fail("restore", folder, "--tenant", "other")[0]
    assert "hyphen" in fail("restore", folder, "--tenant", "acme", "--as", "No")[0]
    assert saved.tenant("acme").plane.rows == copy["rows"]
    assert len(list((data / "planes").iterdir())) == 2


@pytest.mark.usefixtures("saved")
def test_another_master_key_wraps_the_same_data(data, call, fail, folder, tmp_path, monkeypatch):
    old, new = data / "master.key", tmp_path / "new"
    assert "no master key" in fail("restore", folder, "--data", new)[0]
    assert not new.exists()
    restored = call("restore", folder, "--data", new, "--master-key", old, "--new-master-key")[
        "tenants"
    ]
    assert [one["keys"] for one in restored] == [0, 0]
    assert (new / "master.key").read_bytes() != old.read_bytes()
    assert stat.S_IMODE((new / "master.key").stat().st_mode) == 0o600
    assert content(new, "acme") == content(data, "acme")
    # One tenant of an installation with another key, and a backup of another key in the way.
    monkeypatch.setenv("FLEETCAST_DATA", str(new))
    assert "another master key" in fail("restore", folder, "--tenant", "acme", "--as", "x")[0]
    assert "another master key" in fail("backup", folder)[0]
    call("restore", folder, "--tenant", "acme", "--as", "x", "--master-key", old)
    assert content(new, "x") == content(data, "acme")
    assert not call("verify", "--backup", folder, "--master-key", old)["damages"]
    assert "another master key" in fail("verify", "--backup", folder)[0]


def test_only_what_is_new_is_written(data, call, folder):
    call("tenant", "create", "acme")
    write(data, "acme", range(200))
    call("compact")
    call("backup", folder)
    (before,) = Listing.read(folder).tenants
    known = {file.name for file in before.plane.files}
    write(data, "acme", range(200, 400))
    done = call("backup", folder)
    (after,) = Listing.read(folder).tenants
    new = [file for file in after.plane.files if file.name not in known]
    with open_plane(data, "acme") as plane:
        log_bytes = plane.stats().log_bytes
    names = sum(file.length for file in new if file.name.endswith(".names"))
    assert sum(file.length for file in new) <= 1.05 * (log_bytes + names)
    others = sum(path.stat().st_size for path in folder.rglob("*") if path.name == "backup.json")
    assert done["bytes_written"] == sum(file.length for file in new) + others
    assert done["bytes_linked"] == 0
    assert call("backup", folder)["bytes_written"] <= others + 8, "the list alone"


def test_a_backup_has_neither_the_master_key_nor_a_data_key(data, saved, folder):
    master_key = bytes.fromhex((data / "master.key").read_text())
    for path in files_of(folder, saved):
        stored = path.read_bytes()
        assert master_key not in stored
        assert master_key.hex().encode() not in stored
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"PRIVATE KEY" not in stored or b"ENCRYPTED PRIVATE KEY" in stored
    assert b"noise" not in b"".join(path.read_bytes() for path in files_of(folder, saved))


def test_a_folder_of_another_use_is_refused(data, fail, call, folder):
    folder.mkdir()
    (folder / "photo").touch()
    assert "holds no backup" in fail("backup", folder)[0]
    assert "outside of each other" in fail("backup", data / "backup")[0]
    assert "no backup in" in fail("verify", "--backup", folder)[0]
    (folder / "photo").unlink()
    call("backup", folder)
    assert "is not empty" in fail("restore", folder)[0]
    assert "--as needs --tenant" in fail("restore", folder, "--as", "x", status=2)[0]


def test_a_damaged_plane_keeps_no_other_from_being_saved(data, call, saved, folder):
    account_id = saved.tenant("acme").record.account_id
    (data / "planes" / account_id / "key").write_bytes(b"nothing")
    write(data, "idle", [1])
    done = call("backup", folder, status=1)
    assert list(done["failed"]) == ["acme"]
    kept, new = done["tenants"]
    assert kept["content"] == saved.tenant("acme").plane.content.hex()
    assert new["rows"] == ROWS
    assert call("verify", "--backup", folder)["ok"]


@pytest.mark.parametrize("name", STORES)
def test_stores_of_earlier_versions_are_saved_and_restored(name, tmp_path):
    shutil.copytree(HERE / name, tmp_path / "planes")
    engine = Engine(tmp_path / "planes", MASTER_KEY)
    engine.bind_plane("plane")
    done = engine.save_plane("plane", tmp_path / "backup", 1, ())
    assert done is not None
    engine.close()
    restored = Engine(tmp_path / "restored", MASTER_KEY)
    restored.restore_plane("plane", tmp_path / "backup", done.plane)
    assert restored.verify("plane").damages == []
    assert_answers(restored, json.loads((HERE / name / "answers.json").read_text()))
    restored.close()


@pytest.mark.usefixtures("saved")
def test_usage_comes_back(data, call, folder, tmp_path):
    """The count of requests of an account, which nothing but the control store has."""
    account_id = call("tenant", "show", "idle")["account_id"]
    record = UsageRecord(requests=7, run="first", counted=3)
    with opened_store(data) as store, store.write() as view:
        record.put(view, account_id)
    call("backup", folder)
    call("restore", folder, "--data", tmp_path / "new", "--master-key", data / "master.key")
    with opened_store(tmp_path / "new") as store, store.read() as view:
        assert UsageRecord.get(view, account_id) == record


def opened_store(data):
    return closing(ControlStore.embedded(data / "control", read_master_key(data / "master.key")))
