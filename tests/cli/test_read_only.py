"""A data directory on a file system that is mounted read-only, such as a snapshot."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FLEETCAST = [sys.executable, "-m", "fleetcast"]
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
SCOPE = ("--scope", "topology:read")
SPAN = ("--start", "2026-01-01", "--end", "2027-01-01")
RECORD = {
    "measurement": "link",
    "time": "2026-01-01T00:00:00Z",
    "tags": {"entity_id": "a"},
    "fields": {"snr_db": 1.5},
}


@pytest.fixture
def read(call, data, tmp_path):
    """Runs a command on the data directory, which it cannot write; gives status, output, errors."""
    call("tenant", "create", "acme")
    for name, day in (("first", "01"), ("second", "02")):
        file = tmp_path / name
        file.write_text(json.dumps(RECORD | {"time": f"2026-01-{day}T00:00:00Z"}) + "\n")
        call("import", "--tenant", "acme", "--format", "jsonl", file)
        if name == "first":
            call("compact")

    def run(*arguments):
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, str(data)]
        done = subprocess.run(
            [*command, *FLEETCAST, *arguments, "--data", str(data)],
            capture_output=True,
            text=True,
            check=False,
        )
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"no mounts here: {done.stderr.strip()}")
        return done.returncode, done.stdout, done.stderr

    return run


def test_what_is_stored_is_verified_shown_and_exported_where_nothing_can_be_written(read, call):
    """All of them failed, since a store was opened to be written."""
    before = call("verify", "acme")
    status, out, _ = read("verify", "acme", "--json")
    assert (status, json.loads(out)) == (0, before)
    assert before["tenants"][0]["segments"] == before["tenants"][0]["blocks"] == 1
    status, out, _ = read("export", "--tenant", "acme", "--format", "jsonl", *SPAN, "-")
    times = [json.loads(line)["time"] for line in out.splitlines()]
    assert (status, times) == (0, ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])
    for command in (
        ("tenant", "list"),
        ("tenant", "show", "acme"),
        ("describe", "acme"),
        ("key", "list", "acme"),
        ("operator", "list"),
        ("config", "print"),
        ("config", "check"),
    ):
        status, _, err = read(*command)
        assert (status, err) == (0, ""), command


@pytest.mark.parametrize(
    "command",
    [
        ("stats",),
        ("operator", "sessions"),
        ("import", "--check", "--tenant", "acme", "--format", "jsonl", "second"),
        ("delete", "--dry-run", "--tenant", "acme", *SPAN),
        ("forecast", "release", "list"),
    ],
)
def test_what_changes_nothing_answers_as_where_it_can_be_written(
    read, call, tmp_path, monkeypatch, command
):
    """`stats` counted the bytes of links to segments; the others failed."""
    monkeypatch.chdir(tmp_path)
    call("forecast", "release", "promote", "--family", "snr")
    before = call(*command)
    status, out, err = read(*command, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    if "write_id" in before:  # each run of an import has its own
        before["write_id"] = answer["write_id"]
    assert answer == before


def test_a_family_that_was_never_released_is_not_released_by_a_look(read):
    status, out, _ = read("forecast", "release", "list", "--json")
    assert (status, json.loads(out)) == (0, [])


def test_a_backup_has_all_that_is_stored_and_goes_on_from_the_one_before(read, call, tmp_path):
    """Nothing of it may lie in the snapshot, which is gone when the backup is needed."""
    folder = tmp_path / "backup"
    for number in (1, 2):
        status, out, _ = read("backup", folder, "--json")
        assert (status, json.loads(out)["number"]) == (0, number)
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    (saved,) = call("verify", "--backup", folder)["tenants"]
    (stored,) = call("verify", "acme")["tenants"]
    assert [saved[name] for name in ("rows", "values", "answers")] == [
        stored[name] for name in ("rows", "values", "answers")
    ]
    assert call("backup", folder)["number"] == 3


def test_a_log_is_exported_that_a_scan_cannot_sort_in_memory(read, call, tmp_path):
    """A scan writes such a log beside the segments, sorted."""
    fields = {f"field_{number}": 1.5 for number in range(1_100)}
    file = tmp_path / "long"
    with file.open("w") as lines:
        for second in range(1_200):
            time = f"2026-02-01T00:{second // 60:02}:{second % 60:02}Z"
            lines.write(json.dumps(RECORD | {"time": time, "fields": fields}) + "\n")
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    status, out, _ = read("export", "--tenant", "acme", "--format", "jsonl", *SPAN, "-")
    assert (status, out.count("\n")) == (0, 1_202)


def test_what_would_change_it_says_that_it_cannot_be_written(read, call, tmp_path):
    acme = ("--tenant", "acme")
    for command in (
        ("tenant", "create", "other"),
        ("compact",),
        ("key", "create", "acme", *SCOPE),
        ("operator", "sessions", "--end", "ID"),
        ("import", *acme, "--format", "jsonl", tmp_path / "second"),
        ("delete", "--yes", *acme, *SPAN),
        ("forecast", "release", "promote", "--family", "snr"),
        ("tls", "renew"),
        ("serve",),
    ):
        status, _, err = read(*command)
        assert status == 1, command
        assert err.rstrip().endswith("Read-only file system"), command
    assert [tenant["tenant"] for tenant in call("tenant", "list")["tenants"]] == ["acme"]


def test_doctor_blames_the_mount_and_not_the_store(read):
    """It advised to restore the control store from a backup."""
    status, out, _ = read("doctor", "--json")
    failed = [each for each in json.loads(out)["checks"] if not each["ok"]]
    assert status == 1
    assert [each["check"] for each in failed] == ["file system"]
    assert "mounted read-only" in failed[0]["detail"]
