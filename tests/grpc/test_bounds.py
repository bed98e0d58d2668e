"""N1, N2: how many fields a record, and how many fields and series a tenant may have, over both
transports of a service whose bounds are small.
"""

from __future__ import annotations

import json

import pytest

from tests.conformance.api import HOUR_S, accounts_of
from tests.conformance.api import record as document
from tests.service.service import running
from tests.service.test_admin import metrics

from .messages import SECOND_NS, encode, record
from .station import Station

NAMES_BYTES_MAX = 4_096
SMALL = (
    *("--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
    *("--set", "limits.fields_max=4"),
    *("--set", "limits.tenant_fields_max=6"),
    *("--set", "limits.tenant_series_max=3"),
    *("--set", f"limits.tenant_names_bytes_max={NAMES_BYTES_MAX}"),
)
NOW_NS = HOUR_S * SECOND_NS


@pytest.fixture(scope="module")
def service_and_data(tmp_path_factory):
    data = tmp_path_factory.mktemp("bounds") / "data"
    with running(data, *SMALL) as started:
        yield started, data


@pytest.fixture(scope="module")
def accounts(service_and_data):
    yield from accounts_of(*service_and_data)


@pytest.fixture(scope="module")
def station(service_and_data):
    opened = Station(service_and_data[0].ready)
    yield opened
    opened.close()


@pytest.fixture(params=["http", "grpc"])
def send(request, station):
    """Writes a batch of (entity, fields); the field that a refusal names, `None` for none."""

    def over_http(tenant, *batch):
        time = "2026-01-01T00:00:00Z"
        answer = tenant.post([document(time, entity, **fields) for entity, fields in batch])
        if answer.status == 202:
            return None
        field = answer.json["field"]
        assert (answer.status, answer.json) == (400, {"error": "invalid_input", "field": field})
        return field

    def over_grpc(tenant, *batch):
        body = encode(*(record(NOW_NS, entity, fields=fields) for entity, fields in batch))
        outcome = station.write(body, tenant.key)
        if outcome.status == "OK":
            return None
        assert outcome.status == "INVALID_ARGUMENT"
        assert outcome.details.startswith("invalid_input:")
        return outcome.details.removeprefix("invalid_input:")

    return over_http if request.param == "http" else over_grpc


def named(*numbers):
    return {f"f{number}": 1.5 for number in numbers}


def stats(tenant):
    usage = tenant.get("/account/state").json["usage"]
    return usage["records_accepted_total"], usage["series_count"]


def test_n1_fields_of_a_record(send, accounts):
    tenant = accounts.tenant()
    assert send(tenant, ("a", named(*range(4)))) is None
    assert send(tenant, ("a", named(0)), ("a", named(*range(5)))) == "fields"
    assert stats(tenant) == (1, 1)


def test_n2_fields_of_a_tenant(send, accounts):
    tenant = accounts.tenant()
    assert send(tenant, ("a", named(0, 1, 2)), ("a", named(3, 4))) is None
    assert send(tenant, ("b", named(0)), ("a", named(5, 6))) == "fields"
    assert stats(tenant) == (2, 1), "nothing of the refused batch is registered"
    assert send(tenant, ("a", named(5))) is None
    assert send(tenant, ("a", named(6))) == "fields"
    assert send(tenant, ("b", named(*range(4))), ("b", named(4, 5))) is None, "what exists goes on"
    other = accounts.tenant()
    assert send(other, ("a", named(6))) is None, "a bound of each tenant for itself"


def test_n2_series_of_a_tenant(send, accounts):
    tenant = accounts.tenant()
    assert send(tenant, *((entity, named(0)) for entity in "abcd")) == "tags"
    assert send(tenant, *((entity, named(0)) for entity in "abc")) is None
    assert send(tenant, ("a", named(0)), ("d", named(0))) == "tags"
    assert send(tenant, *((entity, named(1)) for entity in "abc")) is None, "what exists goes on"
    assert stats(tenant) == (6, 3)


def test_o1_bytes_of_a_tenants_names(send, accounts):
    tenant = accounts.tenant()
    long = "x" * (NAMES_BYTES_MAX - 256)
    assert send(tenant, ("a" + long, named(0))) is None
    assert send(tenant, ("b" + long, named(0))) == "tags"
    assert send(tenant, ("a" + long, named(0)), ("b", {"y" * 512: 1.5})) == "tags"
    assert stats(tenant) == (1, 1), "nothing of the refused batches is registered"
    assert send(tenant, ("a" + long, named(0))) is None, "what exists goes on"
    other = accounts.tenant()
    assert send(other, ("b" + long, named(0))) is None, "a bound of each tenant for itself"


def test_n2_is_counted_and_logged(send, accounts, service_and_data):
    service, data = service_and_data
    tenant = accounts.tenant()
    assert send(tenant, ("a", named(0, 1, 2)), ("a", named(3, 4, 5)), ("a", named(6))) == "fields"
    assert send(tenant, *((entity, named(0)) for entity in "abcd")) == "tags"
    assert send(tenant, ("x" * NAMES_BYTES_MAX, named(0))) == "tags"
    assert send(tenant, ("a", named(*range(5)))) == "fields", "of a record, not of the tenant"
    counted = metrics(service)
    bounds = ["tenant_fields_max", "tenant_series_max", "tenant_names_bytes_max"]
    for bound in bounds:
        labels = f'tenant="{tenant.name}",bound="{bound}"'
        assert counted[f"fleetcast_tenant_full_total{{{labels}}}"] == 1
    lines = [json.loads(line) for line in (data / "serve.log").read_text().splitlines()]
    full = [line for line in lines if line["event"] == "a tenant is full"]
    logged = [line["bound"] for line in full if line["tenant"] == tenant.name]
    assert logged == [f"limits.{bound}" for bound in bounds]


def test_j6_a_tenant_can_read_its_bounds(accounts):
    limits = accounts.tenant().get("/account/state").json["limits"]
    assert (limits["fields_max"], limits["tenant_fields_max"]) == (4, 6)
    assert (limits["tenant_series_max"], limits["answer_values_max"]) == (3, 1_000_000)
    assert limits["tenant_names_bytes_max"] == NAMES_BYTES_MAX
