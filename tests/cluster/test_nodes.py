"""Several nodes on one database: what one does, the others know."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from itertools import count

import pytest

from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.conformance.api import Tenant, at, record
from tests.console.conftest import Operator
from tests.service.service import FLEETCAST, command, new_tenant, shared_store
from tests.waiting import until

from .nodes import make_nodes, serving

REVOKED_SECONDS = 1.0  # until all nodes refuse a key
TRIES = 5


@pytest.fixture(scope="module")
def nodes(database, tmp_path_factory):
    """Data directories of two nodes, their services, and the accounts of both."""
    del database
    folders = make_nodes(tmp_path_factory.mktemp("nodes"), 2)
    with (
        serving(folders) as services,
        opened(DataDirectory(folders[0]), os.environ) as installation,
    ):
        yield folders, services, installation


def tenant_of(nodes, name):
    """A tenant as each of the nodes serves it, and the id of its key."""
    _, services, installation = nodes
    account, issued = new_tenant(installation, name)
    tenants = [Tenant(service, name, None, str(issued.text)) for service in services]
    return tenants, issued.record.key_id, account.account_id


def test_a_tenant_made_beside_the_nodes_is_served_by_all_at_once(nodes):
    """And each write is in the next read of another node."""
    (one, other), _, _ = tenant_of(nodes, "at-once")
    for number in range(20):
        writer, reader = (one, other) if number % 2 else (other, one)
        writer.write(record(at(number), n=number))
        assert [fields["n"] for _, fields in reader.rows(fields="n")] == list(range(number + 1))


def test_a_revoked_key_is_refused_by_all_nodes_within_a_second(nodes):
    """Even if a write by it was let in a moment ago."""
    numbers = count()

    def is_refused_in_time():
        tenants, key_id, _ = tenant_of(nodes, f"revoked-{next(numbers)}")
        for tenant in tenants:
            for number in range(5):
                tenant.write(record(at(number)))
        _, _, installation = nodes
        installation.keys.revoke(key_id)
        revoked = time.monotonic()
        accepted, asked = 0.0, 0.0
        while asked < 2 * REVOKED_SECONDS:  # of several workers on each node, some hear it first
            for tenant in tenants:
                asked = time.monotonic() - revoked
                if tenant.post([record(at(9))]).status != 401:
                    accepted = asked
        return accepted < REVOKED_SECONDS

    assert any(is_refused_in_time() for _ in range(TRIES)), "a loaded machine may be late, once"


def test_requests_to_all_nodes_add_up(nodes):  # J6
    tenants, _, _ = tenant_of(nodes, "counted")
    for tenant in tenants:
        for number in range(3):
            tenant.write(record(at(number)))

    def totals():
        found = [tenant.get("/account/state").json["usage"] for tenant in tenants]
        return [usage["requests_total"] for usage in found], found[0]["records_accepted_total"]

    before, records = totals()
    assert records == 6
    # Each node knows its own at once, and of others what they had a second ago.
    until(lambda: min(totals()[0]) > 8 + max(before))


def test_a_deleted_tenant_is_gone_from_all_nodes(nodes):
    tenants, _, account_id = tenant_of(nodes, "gone")
    for tenant in tenants:
        tenant.write(record(at(1)))
    folders, _, _ = nodes
    command(folders[1], "tenant", "delete", "gone", "--yes")
    until(lambda: {tenant.get("/topology").status for tenant in tenants} <= {401, 404})
    assert account_id not in str(command(folders[0], "stats"))


def test_one_node_repeats_each_line_of_the_audit_log(nodes):
    tenant_of(nodes, "audited")
    folders, _, _ = nodes

    def lines():
        logs = "".join((folder / "serve.log").read_text() for folder in folders)
        return [
            line for line in logs.splitlines() if "tenant created" in line and "audited" in line
        ]

    until(lines)
    command(folders[0], "tenant", "set", "audited", "--plan", "free")
    until(lambda: any("tenant changed" in line for line in logs_of(folders)))
    assert len(lines()) == 1


def test_doctor_knows_the_database_and_the_nodes_that_serve(nodes):
    folders, _, _ = nodes

    def heard():
        run = subprocess.run(
            [*FLEETCAST, "doctor", "--data", str(folders[0]), "--json"],
            capture_output=True,
            check=False,
            text=True,
        )
        checks = [finding["check"] for finding in json.loads(run.stdout)["checks"]]
        return sum(check.startswith("node ") for check in checks) == 2 and checks

    assert {"database", "clock of the database"} <= set(until(heard))


def logs_of(folders):
    return [line for folder in folders for line in (folder / "serve.log").read_text().splitlines()]


def init(folder, *options):
    """Status and diagnostics of `fleetcast init` on PostgreSQL."""
    store = {each.name: each.text for each in shared_store()}
    names = ("--backend", "--database", "--objects")
    given = {f"--{name.removeprefix('store.')}": text for name, text in store.items()}
    arguments = [part for name in names if name not in options for part in (name, given[name])]
    run = subprocess.run(
        [*FLEETCAST, "init", "--data", str(folder), *arguments, *options],
        capture_output=True,
        check=False,
        text=True,
    )
    return run.returncode, run.stderr


def test_a_node_with_another_master_key_or_environment_does_not_join(nodes, tmp_path):
    folders, _, installation = nodes
    database = installation.settings.store.database
    for options, problem in [
        ((), "another master key"),
        (("--environment", "production"), "environment"),
    ]:
        status, said = init(tmp_path / "node", "--database", database, *options)
        assert status == 1
        assert re.match(r"fleetcast: .*\n$", said)
        assert problem in said
        assert "--master-key" in said
        assert not list((tmp_path / "node").iterdir())
    key = folders[0] / "master.key"
    objects = installation.settings.store.objects
    options = ("--database", database, "--objects", objects, "--master-key", str(key))
    status, said = init(tmp_path / "node", *options)
    assert (status, said) == (0, "")


@pytest.mark.usefixtures("database")
def test_a_node_whose_master_key_was_replaced_is_not_served(tmp_path):
    (folder,) = make_nodes(tmp_path, 1)
    (folder / "master.key").write_text(f"{bytes(32).hex()}\n")
    run = subprocess.run(
        [*FLEETCAST, "serve", "--data", str(folder)], capture_output=True, check=False, text=True
    )
    assert run.returncode == 1
    assert "another master key" in run.stderr
    assert "Traceback" not in run.stderr


def test_forecasts_of_one_node_are_answered_by_another(nodes):
    """The model is a record that each node keeps a copy of; a forecast is computed once."""
    from tests.predictions.conftest import link_rows, write  # noqa: PLC0415 - loads much

    tenants, _, _ = tenant_of(nodes, "forecast")
    write(tenants[0], link_rows("link-1", 20))
    asked = {"model_family": "snr", "link_ids": "link-1"}
    first, second = (tenant.get("/predictions", **asked) for tenant in tenants)
    assert (first.status, second.status) == (200, 200)
    assert first.json["items"]
    assert first.json["items"] == second.json["items"]


def test_an_operators_token_opens_the_console_of_each_node_until_it_is_revoked(nodes):
    folders, services, installation = nodes
    token = str(installation.operators.create(name="Ada").text)
    operators = [Operator(*node) for node in zip(services, folders, strict=True)]
    for operator in operators:
        operator.sign_in(token)
        assert operator.read("tenants")["total"] >= 0
    operators[1].cookie = operators[0].cookie  # a session of one node is one of all
    assert operators[1].read("session") == operators[0].read("session")
    (listed,) = command(folders[1], "operator", "list")["tokens"]
    command(folders[1], "operator", "revoke", listed["token_id"])
    for operator in operators:
        until(lambda operator=operator: operator.ask("api/tenants").status == 401)
