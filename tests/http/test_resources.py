"""Answers of the resources, on stores of their own."""

import gc
import io
import threading
import weakref

import pytest
from application import client
from falcon.testing import create_environ

from fleetcast.config import Settings
from fleetcast.config.sections import Limits
from fleetcast.engine import encode_records

RECORD = {
    "measurement": "link",
    "time": "2026-01-01T00:00:02Z",
    "tags": {"entity_id": "a,c"},
    "fields": {"a": 1.0, "b": 2.0},
}
BODY = encode_records([RECORD])
LATEST = {"as_of_utc": "2026-01-01T00:00:03Z", "freshness_seconds": "1.5", "other": "1"}
SERIES = {"entity_id": "a,c", "start": "2200-01-01", "end": "2200-01-01T00:01:00Z"}


def post(app, body=BODY):
    return app.simulate_post("/telemetry", body=body)


def test_a_write_is_answered_and_read_back():
    app = client()
    result = post(app, encode_records([RECORD, {**RECORD, "time": "1970-01-01"}]))
    answer = result.json
    assert (result.status_code, len(answer.pop("write_id"))) == (202, 36)
    assert answer == {"accepted_count": 1, "rejected_count": 1, "rejected_indices": [1]}
    (entity,) = app.simulate_get("/topology", params=LATEST).json["entities"]
    assert (entity["entity_id"], entity["fields"]) == ("a,c", {"a": 1.0, "b": 2.0})
    other = app.simulate_get("/topology", params={**LATEST, "measurement": "telemetry"}).json
    assert other["entities"] == []


@pytest.mark.parametrize(
    ("limits", "query", "code"),
    [
        ({}, {}, None),
        ({}, {"end": "2200-01-01T01:00:01Z"}, "interval_required"),
        ({"raw_span_seconds": 59}, {}, "interval_required"),
        ({"point_budget": 1}, {"interval": "15s", "agg": "last"}, "interval_too_fine"),
        ({}, {"start": "2026-01-01"}, "history_horizon_exceeded"),
        ({"history_horizon_days": 99_999}, {"start": "2026-01-01"}, "interval_required"),
    ],
)
def test_series_keep_to_the_settings(limits, query, code):
    app = client(settings=Settings(limits=Limits(requests_per_minute=0, **limits)))
    result = app.simulate_get("/topology/series", params={**SERIES, **query})
    assert result.json.get("error") == code


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ({"batch_records_max": 0}, 413),
        ({"tags_max": 0}, 400),
        ({"fields_max": 1}, 400),
        ({"tenant_fields_max": 1}, 400),
        ({"tenant_series_max": 0}, 400),
        ({"tenant_names_bytes_max": 1}, 400),
    ],
)
def test_writes_keep_to_the_settings(limits, status):
    app = client(settings=Settings(limits=Limits(requests_per_minute=0, **limits)))
    result = post(app)
    assert (result.status_code, app.stores.plane().stats().rows) == (status, 0)


def test_account_state():
    app = client()
    assert post(app).status_code == 202
    state = app.simulate_get("/account/state").json
    assert state["tenant_key"] == "acme"
    assert state["scopes"] == ["predictions:read", "telemetry:write", "topology:read"]
    assert state["entitlements"] == {"live_ingest": True, "predictions": []}
    assert state["usage"]["records_accepted_total"] == 1
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

    app = client()
    headers = {"X-Api-Key": app.stores.text("good"), "Content-Length": "2"}
    environ = create_environ("/telemetry", method="POST", headers=headers)
    environ["wsgi.input"] = Input(b"[]")
    watched = weakref.ref(environ["wsgi.input"])
    statuses = []
    gc.disable()
    try:
        app.app(environ, lambda status, _fields: statuses.append(status))
        del environ
        assert (statuses, watched()) == (["202 Accepted"], None)
    finally:
        gc.enable()
