"""`fleetcast tenant delete` gives a signed receipt: what was destroyed, where and when."""

from __future__ import annotations

import json
import os

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fleetcast.cli.main import run
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from fleetcast.security.master_key import key_id, read_master_key

RECORD = '{"measurement":"link","time":"2026-01-01","tags":{"entity_id":"a"},"fields":{"a":1}}\n'


@pytest.fixture
def filled(call, tmp_path):
    """A tenant with rows in a segment and in the log."""
    file = tmp_path / "records.jsonl"
    file.write_text(RECORD)
    account_id = call("tenant", "create", "acme")["account_id"]
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    call("compact", "acme")
    call("import", "--tenant", "acme", "--format", "jsonl", file)
    return account_id


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def is_checked_by(public_key, document):
    """Checks a signature as an auditor without the installation does."""
    content = json.dumps(document["receipt"], sort_keys=True, separators=(",", ":")).encode()
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    try:
        key.verify(bytes.fromhex(document["signature"]), b"receipt of fleetcast 1\n" + content)
    except InvalidSignature:
        return False
    return True


def test_every_file_of_the_tenant_is_in_the_receipt_and_gone(call, data, filled):
    folder = data / "planes" / filled
    sizes = [path.stat().st_size for path in files_of(folder)]
    document = call("tenant", "delete", "acme", "--yes")
    receipt = document["receipt"]
    assert (receipt["account_id"], receipt["tenant"]) == (filled, "acme")
    assert (document["account_id"], document["deleted"]) == (filled, True)
    parts = {part["what"]: part for part in receipt["destroyed"]}
    assert {"data key", "rows", "newest rows", "forecasts"} < set(parts)
    assert parts["data key"]["where"] == f"planes/{filled}/key"
    assert sum(part["files"] for part in receipt["destroyed"]) == len(sizes)
    assert sum(part["bytes"] for part in receipt["destroyed"]) == sum(sizes)
    assert all(part["is_gone"] and not part["linked_files"] for part in receipt["destroyed"])
    assert not folder.exists()
    assert receipt["begun_at"] <= receipt["key_destroyed_at"] <= receipt["ended_at"]
    assert receipt["master_key"] == key_id(read_master_key(data / "master.key"))


def test_the_signature_is_checked_with_and_without_the_installation(call, fail, tmp_path, filled):
    del filled
    document = call("tenant", "delete", "acme", "--yes")
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(document))
    assert call("tenant", "receipt", file) == document["receipt"]
    assert is_checked_by(document["public_key"], document)
    changed = json.loads(json.dumps(document))
    changed["receipt"]["destroyed"][0]["bytes"] += 1
    file.write_text(json.dumps(changed))
    assert "was changed" in fail("tenant", "receipt", file)[0]
    assert not is_checked_by(document["public_key"], changed)
    file.write_text(json.dumps({**document, "signature": "00" * 64}))
    assert "was changed" in fail("tenant", "receipt", file)[0]


def test_the_audit_log_has_the_receipt_and_a_new_master_key_keeps_it_good(
    call, data, tmp_path, filled
):
    del filled
    document = call("tenant", "delete", "acme", "--yes")
    lines = (data / "audit.log").read_text().splitlines()
    line = next(line for line in lines if json.loads(line)["event"] == "tenant data destroyed")
    file = tmp_path / "receipt.json"
    file.write_text(line)
    call("master-key", "rotate")
    assert call("tenant", "receipt", file) == document["receipt"]
    call("tenant", "create", "acme")
    after = call("tenant", "delete", "acme", "--yes")
    assert after["public_key"] == document["public_key"]


def test_files_that_a_backup_has_as_well_are_told(call, tmp_path, filled):
    del filled
    call("backup", tmp_path / "backup")
    receipt = call("tenant", "delete", "acme", "--yes")["receipt"]
    (rows,) = [part for part in receipt["destroyed"] if part["what"] == "rows"]
    assert (rows["files"], rows["linked_files"], rows["is_gone"]) == (1, 1, True)
    assert [path.name for path in (tmp_path / "backup").rglob("segments/*")] != []


def test_a_key_that_an_earlier_run_destroyed_is_told(call, data, filled):
    with opened(DataDirectory(data), os.environ) as installation:
        installation.engine.destroy_plane(filled)
    receipt = call("tenant", "delete", "acme", "--yes")["receipt"]
    assert receipt["key_destroyed_at"] is None
    assert [part["what"] for part in receipt["destroyed"]] == ["forecasts"]


def test_the_text_says_what_is_gone(data, capsys, filled):
    assert data.is_dir()
    capsys.readouterr()
    assert run(["tenant", "delete", "acme", "--yes"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Deleted tenant acme, account {filled}.\nData key destroyed at: 20")
    assert f"planes/{filled}/key" in out
