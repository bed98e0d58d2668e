import json
import os
import stat
import time

import pytest

from fleetcast.cli.main import run
from fleetcast.installation.ownership import left_to_owner
from fleetcast.security.master_key import exposure
from tests.waiting import until

NOBODY = 65_534


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_what_root_makes_in_the_services_directory_is_the_services(call, data):
    """The service could not open a tenant that root had made."""
    for path in [data, *data.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    call("tenant", "create", "acme")
    call("key", "create", "acme", "--scope", "telemetry:write")
    call("compact")
    assert {path.lstat().st_uid for path in [data, *data.rglob("*")]} == {NOBODY}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_what_root_makes_is_the_services_before_the_command_ends(data):
    """A service could not open a segment as long as `sudo fleetcast compact` took."""
    os.chown(data, NOBODY, NOBODY)
    segment, place = data / "planes" / "acme" / "segment", data / "place"
    with left_to_owner(data):
        place.touch()
        segment.parent.mkdir(parents=True)
        segment.touch()
        assert until(lambda: segment.parent.stat().st_uid == segment.stat().st_uid == NOBODY)
        assert place.stat().st_uid == 0, "`import --resume` would refuse its own file"
    assert place.stat().st_uid == NOBODY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_the_next_command_of_roots_mends_what_a_killed_one_left(call, data, monkeypatch):
    """Whatever the clock says; but a file that root put there is root's still."""
    os.chown(data, NOBODY, NOBODY)
    (data / "planes").mkdir(exist_ok=True)
    left = data / "planes" / "left"
    left.touch()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3_600)
    call("tenant", "list")
    owners = {path.name: path.stat().st_uid for path in (left, data / "control", data / "tls")}
    assert owners == {"left": NOBODY, "control": NOBODY, "tls": 0}
    assert (data / "master.key").stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_a_file_of_roots_that_has_a_second_name_in_the_directory_stays_roots(call, data, tmp_path):
    os.chown(data, NOBODY, NOBODY)
    system = tmp_path / "system"
    system.write_text("")
    (data / "linked").hardlink_to(system)
    call("tenant", "create", "acme")
    assert system.stat().st_uid == 0


def test_init_makes_a_private_directory_once(data, fail):
    assert (mode(data), mode(data / "master.key")) == (0o700, 0o600)
    assert mode(data / "tls" / "server.key") == mode(data / "tls" / "ca.key") == 0o600
    assert {"ca.key", "ca.pem", "server.pem", "server.key"} == {
        path.name for path in (data / "tls").iterdir()
    }
    before = (data / "master.key").read_bytes()
    (line,) = fail("init")
    assert "not empty" in line
    assert (data / "master.key").read_bytes() == before


def test_f1_every_name_that_init_makes_is_durable(tmp_path, monkeypatch):
    """F1: without the master key nothing that was acknowledged can be read after a power cut."""
    durable, sync = {}, os.fsync

    def fsync(descriptor):
        sync(descriptor)
        meta = os.fstat(descriptor)
        is_folder = stat.S_ISDIR(meta.st_mode)
        durable[meta.st_ino] = os.listdir(descriptor) if is_folder else []  # noqa: PTH208 - no path

    monkeypatch.setattr(os, "fsync", fsync)
    root = tmp_path / "new" / "data"
    assert run(["init", "--data", str(root)]) == 0
    for folder in (root, root / "tls", root / "control"):
        assert set(durable[folder.stat().st_ino]) == {path.name for path in folder.iterdir()}
    for folder in (root, root.parent):
        assert folder.name in durable[folder.parent.stat().st_ino]
    for file in (root / "master.key", root / "fleetcast.toml"):
        assert file.stat().st_ino in durable


def test_an_init_that_fails_leaves_nothing(tmp_path):
    assert run(["init", "--data", str(tmp_path / "new"), "--environment", "moon"]) == 1
    assert not (tmp_path / "new").exists()


def test_tenants_from_creation_to_deletion(call, fail):
    created = call(
        "tenant", "create", "acme", "--plan", "free", "--no-live-ingest", "--retention", "400d"
    )
    assert set(created) == {"tenant", "account_id"}
    shown = call("tenant", "show", "acme")
    assert shown["account_id"] == created["account_id"]
    assert (shown["plan"], shown["live_ingest"], shown["retention"]) == ("free", False, "400d")
    changed = call(
        "tenant", "set", "acme", "--live-ingest", "on", "--plan", "pro", "--retention", "off"
    )
    assert (changed["plan"], changed["live_ingest"], changed["retention"]) == ("pro", True, None)
    assert call("tenant", "disable", "acme")["status"] == "disabled"
    assert call("tenant", "enable", "acme")["status"] == "active"
    assert [row["tenant"] for row in call("tenant", "list")["tenants"]] == ["acme"]
    assert "--yes" in fail("tenant", "delete", "acme")[0]
    call("tenant", "delete", "acme", "--yes")
    assert call("tenant", "list") == {"tenants": []}


def test_keys_from_creation_to_revocation(call):
    call("tenant", "create", "acme")
    created = call("key", "create", "acme", "--scope", "topology:read", "--expires", "90d")
    assert created["key"].startswith("ftk_sandbox_")
    successor = call("key", "rotate", created["key_id"], "--overlap", "1h")
    assert successor["key"] != created["key"]
    call("key", "revoke", successor["key_id"])
    rows = {row["key_id"]: row for row in call("key", "list", "acme")["keys"]}
    assert rows[successor["key_id"]]["status"] == "revoked"
    assert rows[created["key_id"]]["status"] == "active"
    assert created["key"] not in json.dumps(list(rows.values()))


def test_keys_can_be_made_for_another_environment(call):  # B16
    call("tenant", "create", "acme")
    created = call(
        "key", "create", "acme", "--scope", "topology:read", "--environment", "dedicated-x"
    )
    assert created["key"].startswith("ftk_dedicated-x_")


def test_provision_twice(call, tmp_path):
    file = tmp_path / "fleet.toml"
    file.write_text(
        '[[tenant]]\nname = "acme"\n[[tenant.key]]\nname = "k"\n'
        'scopes = ["topology:read"]\nkey_file = "k.key"\n'
    )
    assert call("provision", file)["tenants"][0]["action"] == "created"
    assert call("provision", file)["tenants"][0]["action"] == "unchanged"
    assert mode(tmp_path / "k.key") == 0o600


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["nonsense"], 2),
        (["tenant", "nonsense"], 2),
        (["tenant", "list", "--nonsense"], 2),
        (["tenant", "create"], 2),
        (["tenant", "create", "a", "b"], 2),
        (["key", "create", "acme"], 2),
        (["tenant", "create", "a", "--plan", "gold"], 1),
        (["tenant", "create", "a", "--retention", "5y"], 1),
        (["tenant", "create", "Not_a_slug"], 1),
        (["tenant", "show", "nobody"], 1),
        (["key", "create", "nobody", "--scope", "topology:read"], 1),
        (["key", "revoke", "nothing"], 1),
        (["serve", "--workers", "none"], 1),
        (["serve", "--http", "nowhere"], 1),
        (["serve", "--set", "limits.point_budget=3"], 1),
        (["config", "print", "--set", "nonsense"], 1),
        (["provision", "/nonexistent.toml"], 1),
        (["import", "--tenant", "acme", "--format", "jsonl", "/nonexistent"], 1),
    ],
)
def test_failures_are_one_line_and_a_status(fail, arguments, status):
    assert len(fail(*arguments, status=status)) == 1


def test_commands_need_a_data_directory(fail, tmp_path):
    for command in (["tenant", "list"], ["stats"], ["config", "check"], ["serve"]):
        (line,) = fail(*command, "--data", tmp_path / "nothing")
        assert "fleetcast init" in line


def test_config_print_names_the_sources(call, monkeypatch):
    monkeypatch.setenv("FLEETCAST_HTTP__WORKERS", "3")
    printed = call("config", "print", "--set", "http.threads=2")
    assert printed["service.environment"]["source"].endswith("fleetcast.toml")
    assert printed["http.workers"] == {"value": 3, "source": "FLEETCAST_HTTP__WORKERS"}
    assert printed["http.threads"] == {"value": 2, "source": "--set"}
    explained = call("config", "print", "--explain")
    assert explained["limits.tags_max"]["explanation"] == "Tags of a record."


def test_config_check_reads_the_names_of_other_protocols(call, data, fail):
    (data / "adapters.toml").write_text('[[map]]\nfrom = "cpu"\nto = "telemetry"\n')
    call("config", "check")
    (data / "adapters.toml").write_text('[[map]]\nto = "telemetry"\n')
    (problem,) = fail("config", "check")
    assert "adapters.toml: table 1: from is missing" in problem


def test_config_check_lists_every_fault(fail):
    assert len(fail("config", "check", "--set", "a.b=1", "--set", "http.workers=0")) == 2


def test_another_master_key_is_refused(fail, data):
    (data / "master.key").write_text("ab" * 32)
    (line,) = fail("tenant", "list")
    assert "master key" in line
    assert "abab" not in line


def test_the_master_key_can_come_from_a_program(call, data, monkeypatch):
    key = (data / "master.key").read_text()
    (data / "master.key").rename(data / "elsewhere")
    monkeypatch.setenv("FLEETCAST_SECURITY__MASTER_KEY_COMMAND", f"echo {key.strip()}")
    assert call("tenant", "list") == {"tenants": []}


def test_compact_stats_and_verify_go_through_every_tenant(call, data, tmp_path):
    call("tenant", "create", "acme")
    call("tenant", "create", "other")
    file = tmp_path / "records.jsonl"
    record = '{"measurement":"link","time":"2026-01-01","tags":{"entity_id":"a"},"fields":{"a":1}}'
    file.write_text(f"{record}\n" * 3)
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    (row,) = call("compact", "acme")["tenants"]
    assert (row["busy"], row["blocks"]) == (False, 1)
    acme, other = call("stats")["tenants"]
    assert (acme["rows"], acme["values"], acme["segments"], other["rows"]) == (3, 3, 1, 0)
    found = call("verify")
    assert (found["ok"], [each["rows"] for each in found["tenants"]]) == (True, [3, 0])
    segments = list(data.glob("planes/*/segments/*"))
    for segment in segments:
        segment.write_bytes(segment.read_bytes()[:-1])
    acme, other = call("verify", status=1)["tenants"]
    assert {damage.split()[1].rstrip(":") for damage in acme["damages"]} == {
        segment.name for segment in segments
    }
    assert other["damages"] == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, ("there is no master key at", "put back the copy", "master_key_command")),
        ("ab" * 31, ("holds 31 bytes", "32 bytes")),
        ("ab" * 33, ("holds 33 bytes", "32 bytes")),
        ("YWJj", ("holds 3 bytes", "32 bytes")),
        ("", ("holds 0 bytes", "32 bytes")),
        ("no key", ("6 characters that are neither", "32 bytes")),
        ("\u00e9" * 64, ("128 characters that are neither", "32 bytes")),
    ],
)
def test_a_master_key_that_is_gone_or_bad_says_what_to_do(fail, data, content, said):
    file = data / "master.key"
    file.unlink() if content is None else file.write_text(content, encoding="utf-8")
    for command in (["tenant", "list"], ["serve"]):
        (line,) = fail(*command)
        assert str(file) in line
        assert [part for part in said if part not in line] == []
        assert not content or content not in line


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_serve_refuses_a_master_key_that_others_can_get_at(call, fail, data, mode):
    file = data / "master.key"
    file.chmod(mode)
    (line,) = fail("serve")
    assert line == (
        f"fleetcast: {file} has mode {mode:04o}, so others can get at the key: chmod 600 {file}"
    )
    assert call("tenant", "list") == {"tenants": []}


def test_a_key_of_roots_may_be_read_by_the_group_of_a_service(tmp_path, monkeypatch):
    file = tmp_path / "master.key"
    file.touch(0o440)
    if os.geteuid():
        pytest.skip("only root can make a file of root's")
    assert "0440" in exposure(file)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert exposure(file) is None
    file.chmod(0o444)
    assert "0444" in exposure(file)


def test_an_address_says_how_one_looks(fail):
    for option, value in (("--http", "8080"), ("--grpc", "on"), ("--admin", "localhost:x")):
        (line,) = fail("serve", option, value)
        assert "must be HOST:PORT, such as 127.0.0.1:8080" in line
        assert option in line
