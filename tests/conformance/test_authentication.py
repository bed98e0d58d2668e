"""B16 to B23: keys, tenants, scopes. Rate limit and lockout have tests of their own."""

from __future__ import annotations

from functools import partial

import pytest

from fleetcast.engine import Tenant
from tests.key_text import id_of, key_text, secret_of
from tests.waiting import until_well

from .api import at, record, refusal

SERIES = f"/topology/series?entity_id=e&start={at(0)}&end={at(60)}"
READS = ("/topology", SERIES, "/predictions", "/account/state")
NO_KEY = (401, {"error": "auth_failed"})


def everywhere(service, key):
    """The answers of every authenticated endpoint."""
    yield service.post([], key=key)
    for path in READS:
        yield service.request("GET", path, key=key)


def test_every_endpoint_needs_a_key_and_health_needs_none(service):
    for answer in everywhere(service, None):
        assert refusal(answer) == NO_KEY
    for name in ("", "/telemetry", "/topology", "/predictions"):
        until_well(partial(service.request, "GET", f"/health{name}", key=None))


@pytest.mark.parametrize("change", ["cut", "longer", "other", "case", "blank", "scheme", "empty"])
def test_a_key_that_is_not_one_of_ours(service, tenant, change):
    key = tenant.key
    last = "0" if key[-1] != "0" else "1"
    bad = {
        "cut": key[:-1],
        "longer": key + "0",
        "other": key[:-1] + last,
        "case": key.upper(),
        "blank": "nonsense",
        "scheme": f"Bearer {key}",
        "empty": " ",
    }[change]
    for answer in everywhere(service, bad):
        assert refusal(answer) == NO_KEY


def test_a_key_with_a_changed_secret_and_a_right_checksum(service, accounts, tenant):
    """Two genuine keys, the id of one and the secret of the other."""
    key_id, secret = id_of(tenant.key), secret_of(accounts.key(tenant.name))
    mixed = key_text("sandbox", key_id, secret)
    unknown = key_text("sandbox", "a" * len(key_id), secret)
    for key in (mixed, unknown):
        for answer in everywhere(service, key):
            assert refusal(answer) == NO_KEY


def test_b16_a_key_of_another_environment_is_401(service, accounts, tenant):
    key = accounts.key(tenant.name, environment="production")
    for answer in everywhere(service, key):
        assert refusal(answer) == NO_KEY


def test_revoked_and_expired_keys_are_401(service, accounts, tenant):
    expired = accounts.key(tenant.name, age_seconds=60, lifetime_seconds=59)
    for answer in everywhere(service, expired):
        assert refusal(answer) == NO_KEY
    assert tenant.get("/account/state").status == 200
    accounts.revoke(tenant.key)
    for answer in everywhere(service, tenant.key):
        assert refusal(answer) == NO_KEY


def test_b17_a_disabled_tenant_is_403_until_it_is_enabled(service, accounts, tenant):
    accounts.tenants.change(tenant.name, disabled=True)
    for answer in everywhere(service, tenant.key):
        assert refusal(answer) == (403, {"error": "tenant_disabled"})
    accounts.tenants.change(tenant.name, disabled=False)
    assert tenant.get("/topology").status == 200


def test_b17_a_key_without_its_tenant_is_404(service, accounts, tenant):
    with accounts.store.write() as view:
        kept = Tenant.get(view, tenant.name)
        Tenant.delete(view, tenant.name)
    accounts.be_heard()
    for answer in everywhere(service, tenant.key):
        assert refusal(answer) == (404, {"error": "tenant_unknown"})
    with accounts.store.write() as view:
        kept.put(view)
    assert tenant.get("/topology").status == 200


def test_b17_a_deleted_tenant_takes_its_keys_along_and_its_name_is_free(service, accounts):
    tenant = accounts.tenant("short-lived")
    tenant.write(record(at(1)))
    accounts.delete(tenant)
    for answer in everywhere(service, tenant.key):
        assert refusal(answer) == NO_KEY
    again = accounts.tenant("short-lived")
    assert again.key != tenant.key
    assert again.entities() == []
    assert tenant.get("/topology").status == 401


SCOPES = {
    "/telemetry": "telemetry:write",
    "/topology": "topology:read",
    SERIES: "topology:read",
    "/predictions": "predictions:read",
}


@pytest.mark.parametrize("scope", sorted(set(SCOPES.values())))
def test_a_scope_opens_its_endpoints_and_no_other(service, accounts, quiet, scope):
    key = accounts.key(quiet.name, scopes=[scope])
    for path, needed in SCOPES.items():
        if path == "/telemetry":
            answer = service.post([], key=key)
        else:
            answer = service.request("GET", path, key=key)
        if needed == scope:
            assert answer.status == {"/telemetry": 202, "/predictions": 400}.get(path, 200)
        else:
            assert refusal(answer) == (403, {"error": "insufficient_scope"})


def test_b18_scope_goes_before_entitlement(service, accounts):
    tenant = accounts.tenant(live_ingest=False)
    reader = accounts.key(tenant.name, scopes=["topology:read"])
    assert refusal(service.post([], key=reader)) == (403, {"error": "insufficient_scope"})
    refused = (403, {"error": "live_ingest_not_entitled"})
    assert refusal(service.post([], key=tenant.key)) == refused
    assert tenant.get("/topology").status == 200
    accounts.tenants.change(tenant.name, live_ingest=True)
    assert tenant.post([]).status == 202


@pytest.mark.parametrize("scope", sorted(set(SCOPES.values())))
def test_b19_any_key_reads_its_account_state(service, accounts, quiet, scope):
    key = accounts.key(quiet.name, scopes=[scope])
    answer = service.request("GET", "/account/state", key=key)
    assert (answer.status, answer.json["scopes"]) == (200, [scope])


def test_b20_401_names_the_scheme(service):
    for answer in everywhere(service, "nonsense"):
        assert answer.headers["WWW-Authenticate"] == 'ApiKey realm="fleet-telemetry"'


@pytest.mark.parametrize("name", ["x-api-key", "api_key", "key"])
def test_b22_a_key_in_the_query_is_no_key(service, quiet, name):
    answer = service.request("GET", f"/topology?{name}={quiet.key}", key=None)
    assert refusal(answer) == NO_KEY


def test_b22_nor_is_one_in_another_header(service, quiet):
    for field in ({"authorization": f"Bearer {quiet.key}"}, {"cookie": f"x-api-key={quiet.key}"}):
        answer = service.request("GET", "/topology", key=None, headers=field)
        assert refusal(answer) == NO_KEY
