"""One node: its id, its clock, and what `doctor` finds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import closing

import pytest

from fleetcast.errors import StoreUnavailable
from fleetcast.installation.backend import stores_of
from fleetcast.installation.directory import DataDirectory
from fleetcast.metrics import sample
from fleetcast.security.master_key import load_master_key
from tests.service.service import FLEETCAST

from .nodes import make_nodes, servers, serving


@pytest.fixture
def node(database, tmp_path):
    del database
    return make_nodes(tmp_path, 1)[0]


@pytest.fixture
def stores(node):
    """The stores as a process of the node has them."""
    directory = DataDirectory(node)
    settings = directory.settings(os.environ).settings
    with closing(stores_of(directory, settings, load_master_key(node, settings.security))) as made:
        yield made


@pytest.mark.parametrize("ahead", [-6.0, 6.0])
def test_a_node_whose_clock_is_off_is_not_ready_and_says_so(stores, monkeypatch, ahead):
    stores.probe_writes()
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() + ahead)
    side = "ahead of" if ahead > 0 else "behind"
    with pytest.raises(StoreUnavailable, match=rf"clock of this node is \d\.\d s {side} the data"):
        stores.probe_writes()


def test_a_copy_of_a_data_directory_does_not_serve_beside_it(node, tmp_path):
    copy = tmp_path / "copy"
    with serving([node]):
        shutil.copytree(node, copy, ignore=shutil.ignore_patterns("serve.lock", "run"))
        refused = subprocess.run(
            [*FLEETCAST, "serve", "--data", copy], capture_output=True, check=False, text=True
        )
    assert refused.returncode == 1
    assert f"{copy} is a copy" in refused.stderr
    assert "fleetcast init" in refused.stderr
    # The first one serves no more: the directory has moved.
    with serving([copy]):
        pass


def findings(node):
    run = subprocess.run(
        [*FLEETCAST, "doctor", "--data", node, "--json"],
        capture_output=True,
        check=False,
        text=True,
    )
    return {finding["check"]: finding for finding in json.loads(run.stdout)["checks"]}


def test_doctor_tries_the_objects_and_looks_at_rights_and_the_password(node):
    found = findings(node)
    for check in ("objects", "rights in the database", "settings file", "database"):
        assert found[check]["ok"], found[check]
    settings = node / "fleetcast.toml"
    settings.chmod(0o640)
    assert not findings(node)["settings file"]["ok"]
    settings.chmod(0o600)
    settings.write_text(settings.read_text().replace("secret_key=", "secret_key=not"))
    refused = findings(node)["objects"]
    assert not refused["ok"]
    assert "cannot write a probe" in refused["detail"]
    assert "may put, get and delete" in refused["advice"]
    assert "fleetfleet" not in json.dumps(refused)


def test_doctor_names_each_server_and_another_bucket(node):
    found = findings(node)
    assert found["sessions of the database"]["ok"]
    roles = [each["detail"] for check, each in found.items() if check.startswith("server ")]
    assert len(roles) == len(servers())
    assert sum("the primary" in role for role in roles) == 1
    settings = node / "fleetcast.toml"
    settings.write_text(settings.read_text().replace("s3://fleet/", "s3://fleet/elsewhere/"))
    other = findings(node)["objects"]
    assert not other["ok"]
    assert "another object store" in other["detail"]
    assert "bucket and prefix" in other["advice"]


def test_a_node_measures_what_it_shares_with_others(stores):
    """The names are those of metrics."""
    measured = {sample(name): value for name, value in stores.gauges().items()}
    assert measured["fleetcast_database_up"] == measured["fleetcast_objects_up"] == 1
    assert measured["fleetcast_database_standbys"] == len(servers()) - 1
    assert 0 < measured["fleetcast_database_sessions"] < measured["fleetcast_database_sessions_max"]
    assert measured["fleetcast_database_log_hours"] >= 1
    assert measured["fleetcast_damaged_stores"] == 0
