"""B16, L3, L6, L15, L27: writes to a plane that is open, beside those that open it."""

from __future__ import annotations

import json

import pytest

from fleetcast.engine import ApiKey
from tests.conformance.api import HOUR_S, accounts_of
from tests.key_text import id_of
from tests.service.service import ask, running

from .messages import SECOND_NS, encode, record
from .station import Station

CALLS = 'fleetcast_grpc_requests_total{method="grpc",route="TelemetryIngest/Write",status="OK"}'
NO_KEY = ("UNAUTHENTICATED", "auth_failed")
ADMIN = ("--admin", "127.0.0.1:0")


def batch(number, count=1, **values):
    rows = [record((HOUR_S + number) * SECOND_NS, f"e{row}", **values) for row in range(count)]
    return encode(*rows)


def counted(service, name):
    lines = ask(service, "/metrics").body.decode().splitlines()
    return sum(int(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A service whose metrics can be read, its accounts, and a channel."""
    data = tmp_path_factory.mktemp("direct") / "data"
    with running(data, "--grpc", "127.0.0.1:0", "--workers", "1", *ADMIN) as service:
        station = Station(service.ready)
        for accounts in accounts_of(service, data):
            yield service, accounts, station
        station.close()


def test_writes_of_both_ways_are_stored_counted_and_logged_alike(watched):
    service, accounts, station = watched
    tenant, before, written = accounts.tenant("acme-two"), counted(service, CALLS), 4
    for number in range(written):  # the first of them opens the plane
        assert station.write(batch(number), tenant.key).status == "OK"
    assert len(tenant.rows("e0")) == written
    accepted = 'fleetcast_records_accepted_total{tenant="acme-two",transport="grpc"}'
    assert counted(service, accepted) == written
    assert counted(service, CALLS) - before == written
    lines = map(json.loads, (accounts.data / "serve.log").read_text().splitlines())
    served = [line for line in lines if line.get("tenant") == "acme-two"]
    served = [line for line in served if line.get("route") == "TelemetryIngest/Write"]
    assert len(served) == written
    assert len({line["request_id"] for line in served}) == written
    varying = {"request_id", "duration_ms", "timestamp", "bytes_in", "bytes_out"}
    assert len({json.dumps({k: v for k, v in s.items() if k not in varying}) for s in served}) == 1


def test_the_next_write_knows_of_every_change(watched):  # B16, L15, L3
    _, accounts, station = watched
    tenant, other = accounts.tenant(), accounts.tenant()
    key, ending = accounts.key(tenant.name), accounts.key(tenant.name)

    def write(key=tenant.key):
        return station.write(batch(0), key)

    assert [write(key).status for key in (key, ending, tenant.key, other.key)] == ["OK"] * 4
    accounts.revoke(key)
    assert write(key).refusal == NO_KEY
    with accounts.store.write() as view:
        stored = ApiKey.get(view, id_of(ending))
        stored.replace(expires_at=stored.created_at).put(view)
    assert write(ending).refusal == NO_KEY
    accounts.tenants.change(tenant.name, disabled=True)
    assert write().details == "tenant_disabled"
    accounts.tenants.change(tenant.name, disabled=False)
    assert write().status == "OK"
    accounts.tenants.change(tenant.name, live_ingest=False)
    assert write().details == "live_ingest_not_entitled"
    away = other.plane.with_suffix(".away")
    other.plane.rename(away)
    assert write(other.key).refusal == ("UNAVAILABLE", "tenant_unavailable")
    away.rename(other.plane)
    assert write(other.key).status == "OK"


def test_refusals_are_those_of_the_first_call(watched):  # L6
    _, accounts, station = watched
    tenant = accounts.tenant()
    assert station.write(batch(0), tenant.key).status == "OK"
    bodies = (b"\xff", batch(0, 10_001), batch(0, fields={str(n): 1.0 for n in range(4_097)}))
    first = [station.write(body, accounts.tenant().key).refusal for body in bodies]
    assert [station.write(body, tenant.key).refusal for body in bodies] == first
    statuses = [status for status, _ in first]
    assert statuses == ["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"]
    assert len(tenant.rows("e0")) == 1
