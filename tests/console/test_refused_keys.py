"""Whose requests are refused: by tenant, key and code, over HTTP and over gRPC."""

from __future__ import annotations

import pytest

from tests.grpc.station import Station
from tests.service.service import ask, command, create_key, running

from .conftest import Operator


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    data = tmp_path_factory.mktemp("refused") / "data"
    with running(data, "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0") as service:
        yield Operator(service, data).sign_in()


def rows(operator, tenant):
    return [row for row in operator.read("refusals")["keys"] if row["tenant"] == tenant]


def test_a_refusal_counts_for_its_tenant_and_key(own):
    service = own.service
    command(own.data, "tenant", "create", "buoys")
    key = create_key(own.data, "buoys", "--name", "dashboard", scopes=["topology:read"])
    for _ in range(3):
        assert service.post([], key=key).status == 403
    assert service.post(b"[").status == 422
    assert service.get("/topology", key="ftk_sandbox_no").status == 401
    assert Station(service.ready).write(b"", key).details == "insufficient_scope"

    http, grpc = rows(own, "buoys")
    assert (http["surface"], http["code"], http["total"]) == ("http", "insufficient_scope", 3)
    assert http["key"] == {"name": "dashboard", "scopes": ["topology:read"]}
    assert http["key_id"] in key
    assert (grpc["surface"], grpc["key_id"], grpc["total"]) == ("grpc", http["key_id"], 1)
    (broken,) = rows(own, "acme")
    assert (broken["code"], broken["total"]) == ("schema_faults", 1)
    lines = ask(service, "/metrics").body.decode().splitlines()
    assert 'fleetcast_tenant_refused_total{tenant="acme",code="schema_faults"} 1' in lines
    assert 'fleetcast_tenant_refused_total{tenant="buoys",code="insufficient_scope"} 4' in lines


def test_a_key_that_is_gone_is_shown_by_its_id(own):
    command(own.data, "tenant", "create", "gone")
    key = create_key(own.data, "gone", scopes=["topology:read"])
    assert own.service.post([], key=key).status == 403
    command(own.data, "tenant", "delete", "gone", "--yes")
    (row,) = rows(own, "gone")
    assert row["key"] is None
    assert row["key_id"] in key
