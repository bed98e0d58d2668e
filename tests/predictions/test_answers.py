"""I8 to I15: what an answer holds, who computes it, and what happens when nobody can."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import resource
from functools import partial

import onnx
import pytest

from fleetcast.forecast.families import SNR
from fleetcast.forecast.onnx import shipped
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.forecast.serving.tables import encode, rollout_key
from fleetcast.security.master_key import read_master_key
from tests.conformance.api import refusal
from tests.service.service import command
from tests.waiting import until_well

from .conftest import link_rows, pool_rows, service_of, write

SNR_VALUES = ["snr_db_p10", "snr_db_p50", "snr_db_p90"]
DEMAND_VALUES = ["offered_bytes_p10", "offered_bytes_p50", "offered_bytes_p99"]


def predictions(tenant, *link_ids, **parameters):
    answer = tenant.get("/predictions", link_ids=link_ids, **parameters)
    assert answer.status == 200, answer.body
    return answer.json


def health_of(tenant):
    return tenant.service.request("GET", "/health/predictions", key=None)


def errors(document):
    return {each["entity_id"]: each["code"] for each in document["entity_errors"]}


def instant(text):
    return dt.datetime.fromisoformat(text)


def test_snr_of_two_links(fleet):
    before = dt.datetime.now(dt.UTC)
    document = predictions(fleet, "link-2", "link-1", "link-2")
    assert document["model_family"] == "snr"
    assert document["entity_errors"] == []
    pairs = [(item["link_id"], item["horizon_minutes"]) for item in document["items"]]
    assert pairs == [(link, h) for link in ("link-2", "link-1") for h in (5, 15, 30, 60)]
    for item in document["items"]:
        assert list(item["value"]) == SNR_VALUES
        low, middle, high = item["value"].values()
        assert low <= middle <= high
        assert 0 < middle < 25, "the links stand at 12 dB"
        assert "demand" not in item
        assert item["model_release_id"] == document["model_release_id"]
        assert item["traffic_role"] == document["traffic_role"] == "primary"
        assert instant(item["predicted_at"]) <= dt.datetime.now(dt.UTC)
    assert instant(document["captured_at"]) >= before


def test_one_horizon(fleet):
    (item,) = predictions(fleet, "link-1", horizon_minutes=15)["items"]
    assert item["horizon_minutes"] == 15


def test_a_fresh_prediction_is_served_by_every_worker(fleet):
    first = predictions(fleet, "link-1")["items"]
    for one in fleet.at_each_worker():
        assert predictions(one, "link-1")["items"] == first


def test_i13_demand_of_a_pool(fleet):
    document = predictions(fleet, "pool-1", model_family="demand")
    assert [item["horizon_minutes"] for item in document["items"]] == [15, 60, 360, 1440]
    for item in document["items"]:
        assert list(item["value"]) == DEMAND_VALUES
        low, middle, high = item["value"].values()
        assert 0 <= low <= middle <= high
        demand = item["demand"]
        assert demand["pool_id"] == "pool-1"
        assert demand["pool_tags"] == {"region": "north", "tier": "gold"}
        issued = instant(demand["issued_at"])
        assert issued.timestamp() % 900 == 0
        ahead = dt.timedelta(minutes=item["horizon_minutes"])
        assert instant(demand["window_end"]) == issued + ahead
        assert instant(demand["window_start"]) == issued + ahead - dt.timedelta(minutes=15)


def test_i9_i10_missing_input_is_an_error_entry_and_never_a_zero(fleet):
    write(fleet, link_rows("old", 20, newest_minutes=30))
    write(fleet, pool_rows("thin", missing=range(100, 107)))
    snr = predictions(fleet, "unknown", "short", "old", "link-1")
    assert errors(snr) == {
        "unknown": "no_telemetry",
        "short": "insufficient_telemetry",
        "old": "no_telemetry",
    }
    assert {item["link_id"] for item in snr["items"]} == {"link-1"}
    assert all(each["message"] for each in snr["entity_errors"])
    demand = predictions(fleet, "unknown", "thin", model_family="demand")
    assert errors(demand) == {"unknown": "no_telemetry", "thin": "insufficient_telemetry"}
    assert demand["items"] == []
    assert demand["model_release_id"] is None  # I11


def test_another_tenant_knows_none_of_it(fleet, tenant):
    predictions(fleet, "link-1")
    document = predictions(tenant, "link-1")
    assert (document["items"], errors(document)) == ([], {"link-1": "no_telemetry"})


def test_i15_the_store_is_gone_and_comes_back(accounts, fleet):
    store = accounts.data / "forecast" / "store"
    away = store.with_name("away")
    store.rename(away)
    try:
        for one in fleet.at_each_worker():
            answer = one.get("/predictions", link_ids="link-1")
            expected = {"error": "prediction_store_unavailable", "retry_after_seconds": 5}
            assert refusal(answer) == (503, expected)
            assert answer.headers["Retry-After"] == "5"
            health = health_of(one)
            assert (health.status, health.json["status"]) == (503, "degraded")
            assert health.json["checks"]["prediction_store"]["ok"] is False
            assert one.get("/topology").status == 200
    finally:
        away.rename(store)
    assert predictions(fleet, "link-1")["items"]


def test_health_tells_when_the_store_takes_no_writes(accounts, fleet):
    """Its disk is full, here for quota; what is fresh is answered all the same."""
    items = predictions(fleet, "link-1")["items"]

    def limit(size):
        for process in accounts.service.processes():
            _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
            resource.prlimit(process, resource.RLIMIT_FSIZE, (size, hard))

    limit(8192)
    try:
        for one in fleet.at_each_worker():
            health = health_of(one)
            assert (health.status, health.json["status"]) == (503, "degraded")
            assert health.json["checks"]["prediction_store"]["ok"] is False
            assert predictions(one, "link-1")["items"] == items
    finally:
        limit(resource.RLIM_INFINITY)
    for one in fleet.at_each_worker():
        until_well(partial(health_of, one))


def predictions_of(service):
    """The store of predictions, as another process opens it."""
    master_key = read_master_key(service.data / "master.key")
    return EmbeddedPredictions(service.data / "forecast", master_key)


def test_health_tells_of_a_writer_that_does_not_end(accounts, fleet):
    """Such as a process that was stopped; what is fresh is answered all the same."""
    items = predictions(fleet, "link-1")["items"]
    store = predictions_of(accounts)
    with store.write():
        health = health_of(fleet)
        assert (health.status, health.json["status"]) == (503, "degraded")
        for one in fleet.at_each_worker():
            assert predictions(one, "link-1")["items"] == items
    store.close()
    until_well(lambda: health_of(fleet))


def test_n7_unknown_entities_leave_no_byte(accounts, fleet):
    predictions(fleet, "link-1")
    file = accounts.data / "forecast" / "store" / "data.mdb"
    before = file.read_bytes()
    for family in ("snr", "demand"):
        for first in range(0, 1_000, 100):
            asked = [f"nobody-{number}" for number in range(first, first + 100)]
            document = predictions(fleet, *asked, model_family=family)
            assert errors(document) == dict.fromkeys(asked, "no_telemetry")
    assert file.read_bytes() == before


def test_nothing_of_a_tenant_lies_open(accounts, fleet):
    predictions(fleet, "link-1", "pool-1")
    written = (accounts.data / "forecast" / "store" / "data.mdb").read_bytes()
    for secret in (b"link-1", b"pool-1", b"north", b"snr_db", b"quantiles"):
        assert secret not in written


def test_a_deleted_tenant_leaves_no_prediction(accounts):
    tenant = accounts.tenant("leaving")
    write(tenant, link_rows("link-1", 20))
    assert predictions(tenant, "link-1")["items"]
    gone = command(accounts.data, "tenant", "delete", "leaving", "--yes")["account_id"]
    with predictions_of(accounts).read() as records:
        assert [*records.under("values", gone.encode())] == []
        assert [*records.under("shares", b"values/" + gone.encode())] == []


def test_the_state_of_the_account_lists_the_families(tenant, disabled):
    state = tenant.get("/account/state").json
    assert state["entitlements"]["predictions"] == ["snr", "demand"]
    state = disabled.tenant().get("/account/state").json
    assert state["entitlements"]["predictions"] == []


@pytest.fixture
def own(tmp_path):
    """A service of the test's own that computes one entity a request."""
    yield from service_of(tmp_path, "--workers", "1", "--set", "forecast.fill_budget=1")


def test_the_fill_budget_of_a_request(own):
    tenant = own.tenant()
    for link in ("a", "b"):
        write(tenant, link_rows(link, 20))
    first = predictions(tenant, "a", "b")
    assert {item["link_id"] for item in first["items"]} == {"a"}
    assert errors(first) == {"b": "prediction_unavailable"}
    second = predictions(tenant, "a", "b")
    assert {item["link_id"] for item in second["items"]} == {"a", "b"}


def test_releases_change_at_run_time_and_go_back(own):
    tenant = own.tenant()
    write(tenant, link_rows("a", 20))

    def release(*arguments):
        return command(own.data, "forecast", "release", *arguments)

    first = predictions(tenant, "a")
    promoted = release("promote", "--family", "snr")["releases"][0]["model_release_id"]
    second = predictions(tenant, "a")
    assert second["model_release_id"] == promoted != first["model_release_id"]
    assert second["items"][0]["assignment_id"] != first["items"][0]["assignment_id"]
    assert second["items"][0]["model_version"] == first["items"][0]["model_version"]

    release("rollback", "--family", "snr")
    third = predictions(tenant, "a")
    assert third["model_release_id"] == first["model_release_id"]

    release("rollback", "--family", "snr")  # I2: provisioned, but no target bound
    fourth = predictions(tenant, "a")
    assert (fourth["items"], fourth["entity_errors"]) == ([], [])
    assert fourth["model_release_id"] is None
    listed = release("list", "--family", "snr")
    assert [row["model_release_id"] for row in listed] == [
        first["model_release_id"],
        promoted,
        first["model_release_id"],
    ]


def made_for_another_view():
    """A model of an earlier feature view, as an upgrade leaves it behind in a primary."""
    model = onnx.load_from_string(shipped(SNR))
    props = {prop.key: prop.value for prop in model.metadata_props}
    onnx.helper.set_model_props(model, props | {"feature_view_id": "snr-0123456789abcdef"})
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("content", "named", "said"),
    [
        (made_for_another_view, True, "its feature view snr-0123456789abcdef, not snr-"),
        (lambda: shipped(SNR)[:-1], False, "is not the file that was promoted"),
    ],
    ids=["another feature view", "another hash"],
)
def test_a_model_that_refuses_to_load_is_told_and_replaced_at_run_time(
    content, named, said, tmp_path
):
    for own in service_of(tmp_path, "--workers", "1"):
        tenant = own.tenant()
        for link in ("a", "b"):
            write(tenant, link_rows(link, 20))
        store = predictions_of(own)
        with store.write() as records:
            rollout = json.loads(records.get("rollouts", rollout_key("snr")))
            file = content()
            if named:
                rollout["primary"]["sha256"] = hashlib.sha256(file).hexdigest()
                records.put("rollouts", rollout_key("snr"), encode(rollout))
            (store.models.folder / f"{rollout['primary']['sha256']}.onnx").write_bytes(file)
        store.close()
        for _ in range(8):  # the first one that reads the file, and those after it
            document = predictions(tenant, "a")
            assert errors(document) == {"a": "prediction_unavailable"}  # I9
            assert document["items"] == []
        assert said in (own.data / "serve.log").read_text()
        assert tenant.get("/topology").status == 200
        promoted = command(own.data, "forecast", "release", "promote", "--family", "snr")
        (release,) = promoted["releases"]
        assert predictions(tenant, "b")["model_release_id"] == release["model_release_id"]
