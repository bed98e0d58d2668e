"""J: health, account state, and the shape of errors."""

from __future__ import annotations

import pytest

from tests.waiting import until_well

from .api import at, record, refusal


def test_health_asks_nobody(service):
    answer = service.request("GET", "/health", key=None)
    assert (answer.status, answer.json) == (200, {"status": "ok", "checks": {}})


@pytest.mark.parametrize(
    ("name", "dependencies"),
    [
        ("telemetry", {"timeseries_store", "auth_store"}),
        ("topology", {"timeseries_store"}),
        ("predictions", {"prediction_store"}),
    ],
)
def test_j4_a_subsystem_lists_its_dependencies(service, name, dependencies):
    answer = until_well(lambda: service.request("GET", f"/health/{name}", key=None))
    assert set(answer.json) == {"status", "checks"}
    assert answer.json["status"] == "ok"
    assert set(answer.json["checks"]) == dependencies
    for check in answer.json["checks"].values():
        assert set(check) == {"ok", "detail"}
        assert check["ok"] is True
        assert isinstance(check["detail"], str)


@pytest.mark.parametrize("path", ["/health", "/health/telemetry"])
def test_j3_parameters_and_keys_change_nothing(service, path):
    target = f"{path}?freshness_seconds=x&%FF=%FF"
    answer = until_well(lambda: service.request("GET", target, key="nonsense"))
    assert answer.json["status"] == "ok"


ACCOUNT = {
    *("tenant_key", "account_id", "environment", "plan", "status", "scopes"),
    *("entitlements", "limits", "usage", "as_of_utc"),
}
USAGE = {
    *("records_accepted_total", "records_rejected_total", "requests_total"),
    *("storage_bytes", "series_count", "period_start"),
}


def test_j6_account_state(accounts):
    tenant = accounts.tenant(plan="enterprise", live_ingest=True)
    tenant.post([record(at(1)), record(at(2)), {**record(at(3)), "fields": {}}])
    tenant.post([{**record(at(4)), "fields": {}}])
    answer = tenant.get("/account/state")
    assert answer.status == 200
    state = answer.json
    assert set(state) >= ACCOUNT
    assert state["tenant_key"] == tenant.name
    assert state["account_id"] == tenant.plane.name
    assert (state["environment"], state["plan"], state["status"]) == (
        "sandbox",
        "enterprise",
        "active",
    )
    assert sorted(state["scopes"]) == ["predictions:read", "telemetry:write", "topology:read"]
    assert state["entitlements"]["live_ingest"] is True
    assert isinstance(state["entitlements"]["predictions"], list)
    assert state["limits"]["batch_records_max"] == 1000
    usage = state["usage"]
    assert set(usage) >= USAGE
    assert (usage["records_accepted_total"], usage["records_rejected_total"]) == (2, 2)
    assert usage["series_count"] == 1
    assert usage["storage_bytes"] > 0
    assert usage["requests_total"] >= 0
    assert state["as_of_utc"].endswith("Z")
    assert tenant.key.encode() not in answer.body


def test_j6_entitlements_follow_the_account(accounts, tenant):
    accounts.tenants.change(tenant.name, live_ingest=False, plan="free")
    state = tenant.get("/account/state").json
    assert (state["plan"], state["entitlements"]["live_ingest"]) == ("free", False)


@pytest.mark.parametrize(
    "path",
    [
        *("/simulations", "/simulations/1", "/rules", "/rules/", "/rules/abc", "/rules.json"),
        *("/metrics", "/openapi.json", "/docs", "/livez", "/readyz", "/console", "/favicon.ico"),
        *("/v1/telemetry", "/v1/topology", "/account", "/account/state/", "/predictions/snr"),
    ],
)
def test_j10_j11_j14_no_other_path_exists(quiet, path):
    for method in ("GET", "POST", "PUT", "DELETE"):
        body = b"[]" if method in {"POST", "PUT"} else None
        answer = quiet.service.request(method, path, body=body, key=quiet.key)
        assert refusal(answer) == (404, {"error": "not_found"})


def test_j13_numbers_are_the_shortest_that_mean_the_same(tenant):
    tenant.write(record(at(1), a=12, b=0.1, c=1e300, d=-5e-7))
    body = tenant.topology().body
    assert b'"a":12.0' in body
    assert b'"b":0.1' in body
    fields = tenant.entities()[0]["fields"]
    assert fields == {"a": 12.0, "b": 0.1, "c": 1e300, "d": -5e-7}
