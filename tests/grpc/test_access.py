"""L3, L6, L14 to L17: keys, rights, tenants, health."""

from __future__ import annotations

import threading

import grpc
import pytest

from tests.waiting import until, until_well

from .messages import encode, record
from .station import INGEST, NOT_SERVING, SECONDS, SERVICE_UNKNOWN, SERVING, Station

NO_KEY = ("UNAUTHENTICATED", "auth_failed")
MALFORMED = b"\xff"


def test_a_key_is_needed_before_anything_is_decoded(station):  # L3
    for key in (None, "", "nonsense"):
        assert station.write(MALFORMED, key).refusal == NO_KEY


def test_keys_that_have_ended(station, accounts, tenant):  # B16
    revoked = accounts.key(tenant.name)
    accounts.revoke(revoked)
    expired = accounts.key(tenant.name, age_seconds=60.0, lifetime_seconds=30)
    elsewhere = accounts.key(tenant.name, environment="production")
    for key in (revoked, expired, elsewhere):
        assert station.write(b"", key).refusal == NO_KEY


def test_more_than_one_key(station, tenant):  # L16
    def call(*keys):
        metadata = [("x-api-key", key) for key in keys]
        return station.call(f"{INGEST}/Write", metadata=metadata)

    assert call(tenant.key, tenant.key).status == "OK"
    assert call(tenant.key, "other").refusal == NO_KEY
    assert call("other", tenant.key).refusal == NO_KEY


def test_scope_and_entitlement_come_before_decoding(station, accounts, tenant):  # L3, B18
    reader = accounts.key(tenant.name, ("topology:read",))
    scope = ("PERMISSION_DENIED", "insufficient_scope")
    assert station.write(MALFORMED, reader).refusal == scope
    other = accounts.tenant(live_ingest=False)
    entitled = ("PERMISSION_DENIED", "live_ingest_not_entitled")
    assert station.write(MALFORMED, other.key).refusal == entitled
    reader = accounts.key(other.name, ("topology:read",))
    assert station.write(MALFORMED, reader).refusal == scope


def test_a_disabled_tenant_and_its_return(station, accounts, tenant):  # L15
    accounts.tenants.change(tenant.name, disabled=True)
    assert station.write(b"", tenant.key).refusal == ("PERMISSION_DENIED", "tenant_disabled")
    accounts.tenants.change(tenant.name, disabled=False)
    assert station.write(b"", tenant.key).status == "OK"


def test_a_plane_that_is_gone_and_back(station, tenant):  # L15, L6, F12
    away = tenant.plane.with_suffix(".away")
    tenant.plane.rename(away)
    outcome = station.write(encode(record(1_700_000_000_000_000_000)), tenant.key)
    assert outcome.refusal == ("UNAVAILABLE", "tenant_unavailable")
    assert outcome.retry_seconds == 5
    away.rename(tenant.plane)
    assert station.write(b"", tenant.key).status == "OK"


def test_bad_keys_here_do_not_lock_out_over_http(own):  # L14
    service = own("--set", "limits.lockout_failures=2")
    station = Station(service.ready)
    for _ in range(5):
        assert station.write(b"", "nonsense").refusal == NO_KEY
    assert service.get("/account/state").status == 200
    for _ in range(2):
        service.get("/account/state", key="ftk_bad")
    assert service.get("/account/state").status == 429
    assert station.write(b"", own.key).status == "OK"
    station.close()


def test_methods_that_do_not_exist(station, tenant):
    assert station.call(f"{INGEST}/Read", b"", tenant.key).status == "UNIMPLEMENTED"
    assert station.call("fleet.telemetry.v2.TelemetryIngest/Write").status == "UNIMPLEMENTED"


@pytest.mark.parametrize("name", [INGEST, "TelemetryIngest"])
def test_health_needs_no_key(station, name):  # L17
    assert until_well(lambda: station.health(name)).response.ok is True
    until(lambda: station.check(name).response == SERVING)
    until(lambda: station.check("").response == SERVING)


def test_health_of_what_is_unknown(station):
    assert station.check("other").status == "NOT_FOUND"
    watch = station.watch("other")
    assert next(watch) == SERVICE_UNKNOWN
    watch.cancel()


def test_health_while_the_planes_are_gone(own):  # L17, F11
    station = Station(own().ready)
    planes = own.data / "planes"
    away = own.data / "away"
    planes.rename(away)
    outcome = station.health()
    assert outcome.refusal == ("UNAVAILABLE", "telemetry_unavailable")
    assert outcome.retry_seconds == 5
    assert station.check("").response == NOT_SERVING
    away.rename(planes)
    until_well(station.health)
    station.close()


def test_o4_a_key_that_is_revoked_before_its_message_comes_writes_nothing(
    station, accounts, tenant
):
    body = encode(record(1_700_000_000_000_000_000))
    key = accounts.key(tenant.name)
    may_send = threading.Event()

    def messages():
        may_send.wait(SECONDS)
        yield body

    metadata = (("x-api-key", key),)
    call = station.channel.stream_unary(f"/{INGEST}/Write")
    answer = call.future(messages(), metadata=metadata, timeout=SECONDS)
    assert station.write(body, key).status == "OK", "the server has taken the call before this one"
    accounts.revoke(key)
    until(lambda: station.write(body, key).refusal == NO_KEY)
    stored = tenant.rows(fields="snr_db")
    may_send.set()
    with pytest.raises(grpc.RpcError) as raised:
        answer.result()
    assert (raised.value.code().name, raised.value.details()) == NO_KEY
    assert tenant.rows(fields="snr_db") == stored
