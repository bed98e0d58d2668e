"""Backups that were committed stay good for ever (docs/format.md, "Versions")."""

from __future__ import annotations

import json
import shutil

import pytest

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.cli.conftest import call, data  # noqa: F401 - fixtures

from .make import MASTER_KEY, TENANT
from .make_backup import BACKUPS
from .test_golden import assert_answers, hidden_rows

NAMES = sorted(path.parent.name for path in BACKUPS.glob("*/answers.json"))


@pytest.fixture(params=NAMES)
def golden(request):
    return BACKUPS / request.param


@pytest.fixture
def expected(golden):
    return json.loads((golden / "answers.json").read_text())


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "golden.key"
    path.write_text(f"{MASTER_KEY.hex()}\n")
    path.chmod(0o600)
    return path


def test_it_is_sound(call, golden, expected, key_file):  # noqa: F811 - fixtures above
    found = call("verify", "--backup", golden / "backup", "--master-key", key_file)
    assert (found["ok"], found["opened"], found["damages"]) == (True, True, [])
    rows = {tenant["tenant"]: tenant["rows"] for tenant in found["tenants"]}
    assert rows == {TENANT: expected["rows"] + hidden_rows(expected), "idle": 0}


def test_it_is_restored_and_answers_as_it_did(call, golden, expected, key_file, tmp_path):  # noqa: F811 - fixtures above
    new = tmp_path / "new"
    restored = call("restore", golden / "backup", "--data", new, "--master-key", key_file)
    keys = {tenant["tenant"]: tenant["keys"] for tenant in restored["tenants"]}
    assert keys == {TENANT: 1, "idle": 0}
    with opened(DataDirectory(new), {}) as installation:
        account_id = installation.tenants.get(TENANT).account_id
        assert_answers(installation.engine, expected, account_id)
        assert installation.engine.verify(account_id).damages == []


def files_of_planes(folder):
    return {path for path in folder.glob("planes/*/**/*") if path.is_file()}


def test_the_next_backup_goes_on_from_it(call, golden, key_file, tmp_path):  # noqa: F811 - fixtures above
    folder, new = tmp_path / "folder", tmp_path / "new"
    shutil.copytree(golden / "backup", folder)
    call("restore", folder, "--data", new, "--master-key", key_file)
    before = files_of_planes(folder)
    done = call("backup", folder, "--data", new)
    assert done["number"] == 3
    new_names = {path.name for path in files_of_planes(folder) - before}
    kinds = {name.partition(".")[2] for name in new_names}
    assert {"key", "names"} <= kinds <= {"key", "names", "state"}, "both were bound; no rows again"
    assert call("verify", "--backup", folder, "--data", new)["ok"]


def test_there_is_one_of_each_version():
    assert {"0.3.0"} <= set(NAMES)
