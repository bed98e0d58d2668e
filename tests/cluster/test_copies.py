"""Tenants that move between one machine and many, as backups of them."""

from __future__ import annotations

import json
import subprocess

import pytest

from fleetcast.installation.making import MASTER_KEY_FILE
from tests.service.service import FLEETCAST, command

from .nodes import make_nodes

ROWS = [
    {
        "measurement": "link",
        "time": f"2026-01-01T00:{minute:02}:00Z",
        "tags": {"entity_id": "a", "site": "s1"},
        "fields": {"snr_db": minute / 7, "state": "up"},
    }
    for minute in range(60)
]


@pytest.fixture
def homes(database, tmp_path):
    """A node of an installation of many, and a data directory of one machine."""
    del database
    (node,) = make_nodes(tmp_path, 1)
    command(tmp_path / "alone", "init")
    return node, tmp_path / "alone"


def answers(data, tenant):
    """Hash over all that scans of a tenant answer, after a look at every byte."""
    (row,) = command(data, "verify", tenant)["tenants"]
    assert not row["damages"]
    return row["answers"]


def move(source, target, tenant, folder):
    """A copy of a tenant of one installation in another."""
    command(source, "backup", str(folder))
    key = str(source / MASTER_KEY_FILE)
    command(target, "restore", str(folder), "--tenant", tenant, "--master-key", key)


@pytest.mark.parametrize("compacted", [False, True])
def test_a_tenant_goes_to_many_machines_and_back(homes, tmp_path, compacted):
    node, alone = homes
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    command(alone, "tenant", "create", "acme")
    command(alone, "import", "--tenant", "acme", "--format", "jsonl", str(rows))
    if compacted:
        command(alone, "compact")
    before = answers(alone, "acme")
    move(alone, node, "acme", tmp_path / "there")
    assert answers(node, "acme") == before
    command(node, "compact")
    assert answers(node, "acme") == before
    command(alone, "tenant", "delete", "acme", "--yes")
    move(node, alone, "acme", tmp_path / "back")
    assert answers(alone, "acme") == before
    for home in homes:
        command(home, "export", *("--tenant", "acme", "--format", "jsonl"), *range_of_all(home))
    exported = [(home / "rows.jsonl").read_text() for home in homes]
    assert exported[0] == exported[1]
    assert len(exported[0].splitlines()) == len(ROWS)


def range_of_all(home):
    return ("--start", "2026-01-01", "--end", "2026-02-01", str(home / "rows.jsonl"))


def test_an_empty_directory_is_not_filled_with_nodes_stores(homes, tmp_path):
    node, _ = homes
    command(node, "backup", str(tmp_path / "backup"))
    new, key = tmp_path / "new", str(node / MASTER_KEY_FILE)
    run = subprocess.run(
        [
            *FLEETCAST,
            "restore",
            tmp_path / "backup",
            "--data",
            tmp_path / "new",
            "--master-key",
            key,
        ],
        capture_output=True,
        check=False,
        text=True,
    )
    assert run.returncode == 1
    assert "--tenant" in run.stderr
    assert "Traceback" not in run.stderr
    assert not new.exists() or not list(new.iterdir())
