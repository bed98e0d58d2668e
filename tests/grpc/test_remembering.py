"""B16, L3, L6, L15, L27: writes by a decision of the last seconds, as by one of their own."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from fleetcast.accounts import Authenticator, ControlStore, Keys, Tenants, key_pepper
from fleetcast.engine import ControlVersion, Engine, Jobs, KeyVerdicts
from fleetcast.errors import Refused
from fleetcast.record_store import DATA_FILE
from tests.conformance.api import HOUR_S, accounts_of
from tests.service.service import ask, running

from .messages import SECOND_NS, encode, record
from .station import Station

REMEMBERED = "fleetcast_grpc_remembered_total "
CALLS = 'fleetcast_grpc_requests_total{method="grpc",route="TelemetryIngest/Write",status="OK"}'
NO_KEY = ("UNAUTHENTICATED", "auth_failed")
ADMIN = ("--admin", "127.0.0.1:0")


def batch(number, count=1):
    records = [record((HOUR_S + number) * SECOND_NS, f"e{row}") for row in range(count)]
    return encode(*records)


def counted(service, name):
    lines = ask(service, "/metrics").body.decode().splitlines()
    return sum(int(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A service whose metrics can be read, its accounts, and a channel."""
    data = tmp_path_factory.mktemp("remembering") / "data"
    with running(data, "--grpc", "127.0.0.1:0", "--workers", "1", *ADMIN) as service:
        station = Station(service.ready)
        for accounts in accounts_of(service, data):
            yield service, accounts, station
        station.close()


def remembered(service, station, tenant):
    """Writes until one was written by the decision about another; how many it took."""
    before = counted(service, REMEMBERED)
    number = 0
    while counted(service, REMEMBERED) == before:
        for _ in range(3):  # within a second, or again
            assert station.write(batch(number), tenant.key).status == "OK"
            number += 1
    return number


def test_writes_of_both_ways_are_stored_counted_and_logged_alike(watched):
    service, accounts, station = watched
    tenant, before = accounts.tenant("acme-two"), counted(service, CALLS)
    written = remembered(service, station, tenant)
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


def test_a_decision_falls_with_what_it_rests_on(watched):  # B16, L15, L3
    service, accounts, station = watched
    tenant, other = accounts.tenant(), accounts.tenant()
    key = accounts.key(tenant.name)
    assert [station.write(batch(0), key).status for _ in range(3)] == ["OK"] * 3
    accounts.revoke(key)
    assert station.write(batch(0), key).refusal == NO_KEY
    remembered(service, station, tenant)
    accounts.tenants.change(tenant.name, disabled=True)
    assert station.write(batch(0), tenant.key).details == "tenant_disabled"
    accounts.tenants.change(tenant.name, disabled=False)
    remembered(service, station, tenant)
    accounts.tenants.change(tenant.name, live_ingest=False)
    assert station.write(batch(0), tenant.key).details == "live_ingest_not_entitled"
    remembered(service, station, other)
    away = other.plane.with_suffix(".away")
    other.plane.rename(away)
    assert station.write(batch(0), other.key).refusal == ("UNAVAILABLE", "tenant_unavailable")
    away.rename(other.plane)
    assert station.write(batch(0), other.key).status == "OK"


def test_refusals_are_those_of_the_first_call(watched):  # L6
    service, accounts, station = watched
    tenant = accounts.tenant()
    bodies = (
        b"\xff",
        encode(record(HOUR_S * SECOND_NS, fields={"snr_db": "text"})),
        batch(0, 10_001),
    )
    assert station.write(batch(0), tenant.key).status == "OK"  # "snr_db" is a number
    outcomes = []
    for body in bodies:
        fresh = accounts.key(tenant.name)  # nothing is known of it
        outcomes.append(station.write(body, fresh).refusal)
    written = remembered(service, station, tenant)
    assert [station.write(body, tenant.key).refusal for body in bodies] == outcomes
    statuses = [status for status, _ in outcomes]
    assert statuses == ["INVALID_ARGUMENT", "INTERNAL", "RESOURCE_EXHAUSTED"]
    assert len(tenant.rows("e0")) == 1 + written


@pytest.fixture
def decided(tmp_path):
    """Verdicts on a control store, and how one about a key of its tenant comes to be."""
    master_key = bytes(range(32))
    pepper = key_pepper(master_key)
    store = ControlStore.create(tmp_path / "control", master_key)
    engine = Engine(tmp_path / "planes", master_key)
    tenants = Tenants(store, engine)
    account_id = tenants.create("acme").account_id
    issued = Keys(store, pepper).create("acme", scopes=["telemetry:write"], environment="sandbox")
    key, authenticator = str(issued.text), Authenticator(store, pepper, "sandbox")
    verdicts = KeyVerdicts(str(tmp_path / "control" / DATA_FILE))

    def remember(basis=None, expires_at=None):
        basis = basis or verdicts.basis()
        identity = authenticator.authenticate(key)
        plane = engine.plane(identity.account_id, identity.tenant_key)
        folder, files = engine.files(identity.account_id, plane)
        verdicts.remember(
            key,
            basis,
            "subject",
            control_transaction=identity.control_transaction,
            expires_at=expires_at,
            plane=plane,
            folder=folder,
            files=files,
        )
        return verdicts.find(key)

    yield SimpleNamespace(
        verdicts=verdicts,
        key=key,
        remember=remember,
        tenants=tenants,
        engine=engine,
        account_id=account_id,
    )
    engine.close()
    store.close()


def test_what_was_looked_up_in_another_state_is_not_remembered(decided):
    assert decided.remember().subject == "subject"
    before = decided.verdicts.basis()
    decided.tenants.create("other")
    assert decided.verdicts.find(decided.key) is None
    assert decided.remember(before) is None
    assert decided.remember() is not None
    assert decided.verdicts.find(f"{decided.key}x") is None


def test_a_decision_rests_on_the_number_that_its_process_noted(decided):
    """As on a node whose accounts are in a database, and whose planes are in no files."""
    noted = ControlVersion()
    verdicts, plane = KeyVerdicts(noted), decided.engine.plane(decided.account_id, "acme")

    def find(number):
        basis = verdicts.basis()
        options = {"expires_at": None, "plane": plane, "folder": "", "files": None}
        verdicts.remember("key", basis, "subject", control_transaction=number, **options)
        return verdicts.find("key")

    assert verdicts.basis() is None
    noted.put(7)
    assert find(6) is None
    verdict, writes = find(7), Jobs(2)
    assert writes.write("mine", "owner", verdict, batch(0), LIMITS)
    assert [token for token, _, _ in taken(writes, 1)] == ["mine"]
    noted.put(8)
    assert verdicts.find("key") is None


def test_a_key_is_good_until_it_ends(decided):
    assert decided.remember(expires_at=1_000_000_000) is None
    assert decided.remember(expires_at=4_000_000_000) is not None


LIMITS = {
    "batch_records_max": 10,
    "tags_max": 32,
    "fields_max": 64,
    "tenant_fields_max": 64,
    "tenant_series_max": 64,
    "tenant_names_bytes_max": 65_536,
    "buffer_bytes_max": None,
}


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


def test_each_batch_comes_back_with_what_came_of_it(decided):
    verdict, writes = decided.remember(), Jobs(2)
    for number in range(40):
        body = b"\xff" if number == 7 else batch(number, 11 if number == 8 else 1)
        assert writes.write(number, "acme", verdict, body, LIMITS)
    found = {token: (result, failure) for token, result, failure in taken(writes, 40)}
    writes.close()
    codes = {token: failure.args[0] for token, (_, failure) in found.items() if failure}
    assert codes.keys() == {7, 8}
    assert codes[8] == "batch_too_large"
    assert all(isinstance(failure, Refused) for _, failure in found.values() if failure)
    good = [result for result, _ in found.values() if result]
    assert len({result.write_id for result in good}) == 38
    assert [result.accepted_count for result in good] == [1] * 38


def test_other_files_are_not_written_to(decided, tmp_path):  # L15
    verdict, writes = decided.remember(), Jobs(1)
    (folder,) = (tmp_path / "planes").iterdir()
    away = folder.rename(tmp_path / "away")
    writes.write("moved", "acme", verdict, batch(0), LIMITS)
    assert taken(writes, 1) == [("moved", None, None)]
    away.rename(folder)
    decided.engine.release(folder.name)
    assert not writes.write("closed", "acme", verdict, batch(0), LIMITS)
    writes.close()


def test_what_was_begun_is_done_when_it_is_closed(decided):  # L27
    verdict, writes = decided.remember(), Jobs(1)
    for number in range(20):
        writes.write(number, "acme", verdict, batch(number), LIMITS)
    writes.close()
    assert sorted(token for token, result, _ in writes.take() if result) == list(range(20))
