"""B16, L3, L6, L15, L27: writes to a plane that is open, beside those that open it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from fleetcast.accounts.key_text import read_key_text
from fleetcast.config import Settings
from fleetcast.engine import Jobs
from fleetcast.errors import Refused, StoreFull, StoreUnavailable, TenantFull
from fleetcast.grpc.call import Call
from fleetcast.grpc.direct_writes import DirectWrites
from fleetcast.grpc.health import WriteReadiness
from fleetcast.grpc.ingest import TelemetryIngest
from fleetcast.grpc.services import GrpcServices
from fleetcast.metrics import Counters, Totals
from fleetcast.protobuf import fields
from fleetcast.surface.stores import TenantStores, write_limits
from tests.conformance.api import HOUR_S, accounts_of
from tests.http.stores import Stores
from tests.service.service import ask, running

from .doubles import Context, accepted
from .messages import SECOND_NS, encode, record
from .station import Station

CALLS = 'fleetcast_grpc_requests_total{method="grpc",route="TelemetryIngest/Write",status="OK"}'
NO_KEY = ("UNAUTHENTICATED", "auth_failed")
ADMIN = ("--admin", "127.0.0.1:0")
LIMITS = write_limits(Settings(), 10)


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
    with accounts.store.write() as tables:
        stored = tables.key(read_key_text(ending).key_id)
        tables.put_key(replace(stored, expires_at=stored.created_at))
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


@pytest.fixture
def stores():
    return Stores()


def parts(stores, **limits):
    settings = replace(Settings(), limits=replace(Settings().limits, **limits))
    return GrpcServices(
        settings=lambda: settings,
        authenticator=stores.authenticator,
        engine=stores.engine,
        counters=Counters.alone(),
    )


def test_a_batch_of_too_many_names_is_refused_and_counted(stores):
    services = parts(stores, tenant_fields_max=1)
    stores.plane()  # is open

    async def run():
        ingest = TelemetryIngest(services, WriteReadiness({}))

        def write(body):
            context = Context((("x-api-key", stores.text("good")),), (body,))
            return ingest.write(None, Call(context, "TelemetryIngest/Write"))

        assert dict(fields(await write(batch(0))))[2] == 1
        with pytest.raises(TenantFull):
            await write(batch(1, fields={"other": 1.0}))
        ingest.close()

    asyncio.run(run())
    assert accepted(services) == 1
    full = 'fleetcast_tenant_full_total{tenant="acme",bound="tenant_fields_max"}'
    assert Totals(services.counters.shared).of(full) == 1


class Failing:
    """Threads in which every write fails."""

    def __init__(self, error):
        self._error = error

    def write(self, _owner, _plane, _body, _limits, end):
        asyncio.get_running_loop().call_soon(end, None, self._error)
        return True


@pytest.mark.parametrize(
    ("error", "is_open"), [(StoreUnavailable("no"), False), (StoreFull("no"), True)]
)
def test_a_store_that_fails_is_released_before_its_client_knows(stores, error, is_open):
    services, ended = parts(stores), []
    tenants = TenantStores(services, "grpc")
    direct = DirectWrites(services, tenants, Failing(error), lambda *told: ended.append(told))
    identity = stores.authenticator.authenticate(stores.text("good"))

    async def run():
        with pytest.raises(type(error)):
            await direct.write(identity, stores.plane(), b"abc")
        return stores.engine.opened(identity.account_id)

    assert (asyncio.run(run()) is not None) is is_open
    assert ended == [(identity, 3)]


def test_a_key_is_let_in_at_once_if_it_was_let_in_before_and_may_write(stores):  # B16
    stores.key("reader", scopes=["topology:read"])
    keys = stores.authenticator
    good, reader = stores.text("good"), stores.text("reader")
    assert keys.writer(good) is None, "it was never seen"
    identity = keys.authenticate(good)
    assert keys.authenticate(reader).scopes == {"topology:read"}
    assert keys.writer(good) == identity
    assert keys.writer(reader) is None


def test_a_closed_plane_is_not_written_to(stores):
    plane, writes = stores.plane(), Jobs(1)
    plane.close()
    assert not writes.write("closed", "acme", plane, batch(0), LIMITS)
    writes.close()


def test_each_batch_comes_back_with_what_came_of_it(stores):
    plane, writes = stores.plane(), Jobs(2)
    for number in range(40):
        body = b"\xff" if number == 7 else batch(number, 11 if number == 8 else 1)
        assert writes.write(number, "acme", plane, body, LIMITS)
    found = {token: (result, failure) for token, result, failure in taken(writes, 40)}
    writes.close()
    codes = {token: failure.args[0] for token, (_, failure) in found.items() if failure}
    assert codes.keys() == {7, 8}
    assert codes[8] == "batch_too_large"
    assert all(isinstance(failure, Refused) for _, failure in found.values() if failure)
    good = [result for result, _ in found.values() if result]
    assert len({result.write_id for result in good}) == 38
    assert [result.accepted_count for result in good] == [1] * 38


def taken(writes, count):
    async def until_all():
        loop, found, done = asyncio.get_running_loop(), [], asyncio.Event()

        def take():
            found.extend(writes.take())
            if len(found) == count:
                done.set()

        loop.add_reader(writes.fileno(), take)
        await done.wait()
        loop.remove_reader(writes.fileno())
        return found

    return asyncio.run(until_all())


def test_what_was_begun_is_done_when_it_is_closed(stores):  # L27
    plane, writes = stores.plane(), Jobs(1)
    for number in range(20):
        writes.write(number, "acme", plane, batch(number), LIMITS)
    writes.close()
    assert sorted(token for token, result, _ in writes.take() if result) == list(range(20))
