"""Questions of the resources to a plane, and their answers made of it."""

import gc
import io
import threading
import weakref

import pytest
from doubles import Plane, client
from falcon.testing import create_environ

DEFAULTS = {
    "point_budget": 10_000,
    "answer_values_max": 1_000_000,
    "history_horizon_days": 30,
    "raw_span_seconds": 3600,
}


def test_a_write():
    plane = Plane()
    result = client(plane=plane).simulate_post("/telemetry", body=b"[{}]")
    assert (result.status_code, result.json) == (
        202,
        {"write_id": "w1", "accepted_count": 2, "rejected_count": 1, "rejected_indices": [1]},
    )
    assert plane.asked == {
        "body": b"[{}]",
        "batch_records_max": 1000,
        "tags_max": 64,
        "fields_max": 4096,
        "tenant_fields_max": 100_000,
        "tenant_series_max": 10_000_000,
        "tenant_names_bytes_max": 1 << 30,
        "buffer_bytes_max": None,
    }


def test_latest_with_and_without_parameters():
    plane = Plane()
    app = client(plane=plane)
    assert app.simulate_get("/topology").content == b'{"entities":[]}'
    assert plane.asked == {
        "as_of_ns": None,
        "freshness_ns": 300_000_000_000,
        "measurement": None,
    }
    query = "as_of_utc=1970-01-01T00:00:02Z&freshness_seconds=1.5&measurement=link&other=1"
    app.simulate_get("/topology", query_string=query)
    assert plane.asked == {
        "as_of_ns": 2_000_000_000,
        "freshness_ns": 1_500_000_000,
        "measurement": "link",
    }


def test_series_with_and_without_parameters():
    plane = Plane()
    app = client(plane=plane)
    app.simulate_get("/topology/series", query_string="entity_id=b&entity_id=a,c&start=1970-01-01")
    assert plane.asked == {
        "entity_ids": ["b", "a,c"],
        "start_ns": 0,
        "end_ns": None,
        "measurement": "telemetry",
        "fields": [],
        "interval": None,
        "agg": None,
        **DEFAULTS,
    }
    query = (
        "entity_id=a&start=1970-01-01&end=1970-01-02&measurement=&fields=a,,b+c,"
        "&interval=5m&agg=last"
    )
    app.simulate_get("/topology/series", query_string=query)
    assert plane.asked["fields"] == ["a", "b c"]
    assert (plane.asked["measurement"], plane.asked["end_ns"]) == ("", 86_400_000_000_000)
    assert (plane.asked["interval"], plane.asked["agg"]) == ("5m", "last")


@pytest.mark.parametrize("name", ["entity_id", "measurement", "fields"])
def test_schema_goes_before_characters(name):
    app = client()
    good = {"entity_id": "a", "start": "1970-01-01"}
    bad = "&".join(f"{key}={value}" for key, value in {**good, name: "%00"}.items())
    result = app.simulate_get("/topology/series", query_string=bad)
    assert (result.status_code, result.json) == (400, {"error": "invalid_input", "field": name})
    result = app.simulate_get("/topology/series", query_string=bad + "&agg=x")
    assert result.status_code == 422
    assert result.json["detail"][0]["type"] == "literal_error"


def test_an_undecodable_measurement_is_not_a_measurement():
    result = client().simulate_get("/topology", query_string="measurement=%FF")
    assert (result.status_code, result.json["field"]) == (400, "measurement")


def test_account_state():
    state = client().simulate_get("/account/state").json
    assert state["tenant_key"] == "acme"
    assert state["scopes"] == ["predictions:read", "telemetry:write", "topology:read"]
    assert state["entitlements"] == {"live_ingest": True, "predictions": []}
    assert state["usage"]["records_accepted_total"] == 5
    assert state["as_of_utc"] == "1970-01-01T00:00:00Z"


def test_predictions_are_not_enabled():
    result = client().simulate_get("/predictions", query_string="unknown=1")
    assert (result.status_code, result.json) == (404, {"error": "predictions_not_enabled"})


def test_liveness_asks_nobody():
    assert client().simulate_get("/health").json == {"status": "ok", "checks": {}}


def test_subsystems_ask_every_time_and_tell_no_secrets():  # J1, J2
    calls = []

    def broken():
        calls.append(1)
        message = "secret"
        raise OSError(message)

    probes = {"telemetry": {"timeseries_store": lambda: None, "auth_store": broken}}
    app = client(probes=probes)
    for _ in range(2):
        result = app.simulate_get("/health/telemetry")
        assert result.status_code == 503
        assert result.json == {
            "status": "degraded",
            "checks": {
                "timeseries_store": {"ok": True, "detail": "ok"},
                "auth_store": {"ok": False, "detail": "unavailable"},
            },
        }
    assert len(calls) == 2
    assert app.simulate_get("/health/topology").status_code == 200


def test_a_probe_that_hangs_is_a_probe_that_fails():  # J2
    release = threading.Event()
    app = client(probes={"topology": {"timeseries_store": lambda: release.wait() and None}})
    try:
        assert app.simulate_get("/health/topology").status_code == 503
    finally:
        release.set()


def test_a_body_is_gone_with_its_request():
    """Bodies are large, and the garbage collector comes late."""

    class Input(io.BytesIO):
        """Can be watched."""

    application = client().app
    headers = {"X-Api-Key": "good", "Content-Length": "4"}
    environ = create_environ("/telemetry", method="POST", headers=headers)
    environ["wsgi.input"] = Input(b"[{}]")
    watched = weakref.ref(environ["wsgi.input"])
    statuses = []
    gc.disable()
    try:
        application(environ, lambda status, _fields: statuses.append(status))
        del environ
        assert (statuses, watched()) == (["202 Accepted"], None)
    finally:
        gc.enable()
