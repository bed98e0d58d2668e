"""The master key turns on many nodes: each node makes the turn, and every process follows."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack

import pytest

from fleetcast.accounts import KEY_PEPPER
from fleetcast.config import Override
from fleetcast.engine import Authenticator
from fleetcast.errors import OperatorError
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import make_data_directory
from fleetcast.installation.opening import opened
from fleetcast.security.master_key import read_master_key
from tests.cli.killed import is_killed_before
from tests.console.conftest import Operator
from tests.service.service import ALL_SCOPES, ENVIRONMENT, command, create_tenant, start
from tests.service.test_master_key import RECORD, Client

from .nodes import ADMIN, make_nodes

MODULES = [
    "fleetcast.installation.cluster_handover",
    "fleetcast.installation.turning",
    "fleetcast.security.certificate",
    "fleetcast.security.handover",
    "fleetcast.security.master_key",
]
LINES_BETWEEN_KILLS = 1 if os.environ.get("FAULTS") == "full" else 60


@pytest.fixture
def nodes(database, tmp_path):
    """Data directories of two nodes of an installation with a tenant, and a key of the tenant."""
    del database
    folders = make_nodes(tmp_path, 2)
    key = create_tenant(folders[0])
    with opened(DataDirectory(folders[0]), os.environ) as installation:
        installation.stores.predictions.ensure()
        with installation.stores.predictions.write() as records:
            records.put("rollouts", b"k", b"v")
        installation.stores.predictions.models.keep(b"a model")
    return folders, key


def master_key(node):
    return read_master_key(node / "master.key")


def refused(node, *arguments):
    """Returns what a command says that must fail."""
    with pytest.raises(AssertionError) as failed:
        command(node, *arguments)
    return str(failed.value)


def is_whole(node, key):
    """Returns true if the key in force on a node opens all that the installation has."""
    with opened(DataDirectory(node), os.environ) as installation:
        authenticator = Authenticator(installation.store.records, KEY_PEPPER, ENVIRONMENT)
        assert authenticator.identify(key, now=installation.keys.now()).tenant.name == "acme"
        with installation.stores.predictions.read() as records:
            assert records.get("rollouts", b"k") == b"v"
        digest = hashlib.sha256(b"a model").hexdigest()
        assert installation.stores.predictions.models.read(digest) == b"a model"
        installation.keys.create("acme", scopes=ALL_SCOPES, environment=ENVIRONMENT)
    return command(node, "verify")["ok"]


def turned(first, last, clients, backup):
    """Makes a turn on two nodes beside clients, and returns its outcome."""
    begun = command(first, "master-key", "rotate")
    assert (begun["is_complete"], len(begun["nodes_left"])) == (False, 1)
    for client in clients:
        client.asks(3)
    assert "not complete" in refused(last, "backup", str(backup))
    assert "not complete" in command(last, "verify")["notes"][0]
    done = command(last, "master-key", "rotate")
    assert (done["is_complete"], done["nodes_left"]) == (True, [])
    assert (done["old_id"], done["new_id"]) == (begun["old_id"], begun["new_id"])
    for client in clients:
        client.asks(5)
    return done


def test_no_request_fails_while_the_master_key_turns(nodes, tmp_path):
    folders, key = nodes
    old, backup = master_key(folders[0]), tmp_path / "backup"
    with ExitStack() as ends:
        services = []
        for folder in folders:
            services.append(start(folder, key, *ADMIN, "--grpc", "127.0.0.1:0"))
            ends.callback(services[-1].end)
        clients = [Client(service, key) for service in services]
        operators = [Operator(*pair).sign_in() for pair in zip(services, folders, strict=True)]
        for client in clients:
            client.start()
            ends.callback(client.is_over.set)
        turned(*folders, clients, backup)
        done = turned(*folders[::-1], clients, backup)
        assert [operator.ask("api/tenants").status for operator in operators] == [200, 200]
        for client in clients:
            client.is_over.set()
            client.join()
        assert [client.refused for client in clients] == [[], []]
        # Processes that begin now get the first key from their parents.
        for service in services:
            service.kill_child("http")
            service.kill_child("grpc")
            posted = [worker.post([RECORD]).status for worker in service.each_worker()]
            assert set(posted) == {202}
    assert all(is_whole(folder, key) for folder in folders)
    assert command(folders[0], "backup", str(backup))["master_key"] == done["new_id"]
    opens_nothing(folders[0], old)


def opens_nothing(node, old):
    """Checks that a master key opens nothing in the database, and joins no node to it."""
    new = (node / "master.key").read_bytes()
    (node / "master.key").write_text(old.hex())
    with (
        pytest.raises(OperatorError, match="another master key"),
        opened(DataDirectory(node), os.environ),
    ):
        pass
    (node / "master.key").write_bytes(new)
    with opened(DataDirectory(node), os.environ) as installation:
        for account in installation.stores.planes():
            assert not installation.engine.is_wrapped_by(account, old)


def test_a_node_that_was_away_is_told_and_a_new_node_waits(nodes, tmp_path):
    folders, key = nodes
    stale = (folders[1] / "master.key").read_bytes()
    for folder in folders:
        start(folder, key, *ADMIN).end()
    assert not command(folders[0], "master-key", "rotate")["is_complete"]
    store = DataDirectory(folders[0]).settings(os.environ).settings.store
    names = ("backend", "database", "objects")
    given = [Override(f"store.{name}", getattr(store, name), "a test") for name in names]
    joining = DataDirectory(tmp_path / "joining")
    for number in (0, 1):
        with pytest.raises(OperatorError, match=r"is not complete|another master key"):
            make_data_directory(
                joining,
                ENVIRONMENT,
                os.environ,
                store=given,
                master_key_file=folders[number] / "master.key",
            )
    assert command(folders[1], "master-key", "rotate")["is_complete"]
    assert master_key(folders[0]) == master_key(folders[1])
    new = (folders[1] / "master.key").read_bytes()
    (folders[1] / "master.key").write_bytes(stale)
    assert "another master key" in refused(folders[1], "master-key", "rotate")
    (folders[1] / "master.key").write_bytes(new)
    assert is_whole(folders[1], key)
    made = make_data_directory(
        joining, ENVIRONMENT, os.environ, store=given, master_key_file=folders[0] / "master.key"
    )
    assert not made
    assert is_whole(joining.root, key)


def test_killed_at_any_line_it_goes_on_where_it_was(nodes):
    folders, key = nodes
    for folder in folders:
        start(folder, key, *ADMIN).end()
    line, states = 1, set()
    while True:
        old = master_key(folders[0])
        rotate = ["master-key", "rotate", "--data", str(folders[0])]
        killed = is_killed_before(line, MODULES, [rotate])
        with opened(DataDirectory(folders[1]), os.environ) as installation:
            states.add((installation.stores.handover.read() is None, master_key(folders[0]) == old))
        assert all(is_whole(folder, key) for folder in folders)
        done = [command(folder, "master-key", "rotate") for folder in folders]
        assert done[1]["is_complete"]
        assert all(is_whole(folder, key) for folder in folders)
        if not killed:
            break
        line += LINES_BETWEEN_KILLS
    assert states >= {(True, True), (False, False)}
