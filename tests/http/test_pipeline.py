"""The order of the stages, and what each answers."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from application import UNLIMITED, client

from fleetcast.config import Settings
from fleetcast.config.sections import Http, Limits
from fleetcast.engine import encode_records
from fleetcast.errors import StoreFull, StoreUnavailable
from fleetcast.http.routes import ROUTES
from fleetcast.metrics import Counters, Totals

RECORD = {"measurement": "link", "time": "2026-01-01", "fields": {"a": 1.0}}
BODY = encode_records([{**RECORD, "tags": {"entity_id": "a"}}])
SERIES = "/topology/series?entity_id=a&start=2200-01-01&end=2200-01-01T00:01:00Z"
BAD = {"headers": {"x-api-key": "bad"}}


class Failing:
    """A service whose reads raise an error."""

    def __init__(self, service, error):
        self.decide, self.common_fields = service.decide, service.common_fields
        self._error = error

    def latest(self, _plane, _query):
        raise self._error

    series = latest


def failing(error):
    return client(decide=lambda service: Failing(service, error))


def limited(**limits):
    return client(settings=Settings(limits=Limits(**limits)))


def post(app, **kwargs):
    return app.simulate_post("/telemetry", body=BODY, **kwargs)


def rows(app):
    return app.stores.plane().stats().rows


def test_stage_by_stage_the_earlier_refusal_wins():
    """Stages 1 to 9: each step mends what the step before complained about."""
    app = client(settings=Settings(limits=Limits(requests_per_minute=0, batch_records_max=1)))
    app.stores.make_poor_keys()
    used_up, locked_out = limited(requests_per_minute=1), limited(lockout_failures=1)
    used_up.simulate_get("/health")
    locked_out.simulate_get("/account/state", **BAD)
    headers = {"x-api-key": "bad", "Content-Encoding": "gzip", "Content-Type": "text/plain"}

    def answer(app=app, path="/telemetry", size="2000000", **changed):
        sent = {**headers, **{name.replace("_", "-"): value for name, value in changed.items()}}
        if size is not None:
            sent["Content-Length"] = size
        result = app.simulate_post(path, body=b"[1,1]" if size == "5" else None, headers=sent)
        content = result.json
        return result.status_code, content.get("error") or content["detail"][0]["type"]

    assert answer(used_up, "/nowhere") == (429, "rate_limited")
    assert answer(locked_out, "/nowhere") == (404, "not_found")
    assert answer(locked_out, "/topology") == (405, "method_not_allowed")
    assert answer(locked_out) == (429, "auth_lockout")
    app.stores.move("planes", away=True)
    assert answer() == (401, "auth_failed")
    assert answer(x_api_key="off") == (403, "tenant_disabled")
    assert answer(x_api_key="gone") == (404, "tenant_unknown")
    assert answer(x_api_key="none") == (503, "tenant_unavailable")
    app.stores.move("planes", away=False)
    assert answer(x_api_key="none") == (403, "insufficient_scope")
    assert answer(x_api_key="idle") == (403, "live_ingest_not_entitled")
    mended = {"x-api-key": "good"}
    assert answer(**mended, size=None) == (411, "length_required")
    assert answer(**mended) == (413, "request_too_large")
    assert answer(**mended, size="5") == (415, "unsupported_content_encoding")
    mended["Content-Encoding"] = None
    assert answer(**mended, size="5") == (422, "content_type")
    mended["Content-Type"] = "application/json"
    assert answer(**mended, size="10") == (400, "invalid_content_length")
    assert answer(**mended, size="0") == (422, "missing")
    assert answer(**mended, size="5") == (413, "batch_too_large")


@pytest.mark.parametrize("path", list(ROUTES))
def test_methods(path):
    app = client()
    allow = ROUTES[path].allow
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE"):
        result = app.simulate_request(method, path)
        if method in allow:
            assert result.status_code != 405
        else:
            assert result.status_code == 405
            assert method == "HEAD" or result.json == {"error": "method_not_allowed"}
            assert result.headers["Allow"] == allow


def test_unknown_paths():
    app = client()
    for path in (
        *("/", "//telemetry", "/telemetry/", "/Telemetry", "/health/", "/a/../health", "/*"),
        *("/simulations", "/rules", "/rules/a", "/v1/telemetry"),
        *("/metrics", "/openapi.json", "/livez"),
    ):
        for method in ("GET", "POST", "OPTIONS", "DELETE"):
            result = app.simulate_request(method, path)
            assert (result.status_code, result.json) == (404, {"error": "not_found"}), path


@pytest.mark.parametrize(
    ("path", "method", "body"),
    [
        (
            "/topology",
            "GET",
            {"error": "telemetry_unavailable", "upstream": "embedded", "retry_after_seconds": 5},
        ),
        ("/telemetry", "POST", {"error": "ingest_buffer_full", "retry_after_seconds": 1}),
    ],
)
def test_n6_what_is_over_a_share_is_refused_before_a_store_is_asked(path, method, body):
    counters = Counters.alone()
    app = client(counters=counters)
    app.stores.move("planes", away=True)
    result = app.simulate_request(method, path, extras={"fleetcast.over_share": True})
    assert (result.status_code, result.json) == (503, body)
    assert result.headers["Retry-After"] == str(body["retry_after_seconds"])
    totals = Totals(counters.shared).all()
    assert totals['fleetcast_refused_over_share_total{surface="http"}'] == 1
    health = app.simulate_get("/health", extras={"fleetcast.over_share": True})
    assert health.status_code == 200


def test_n9_a_body_that_is_due_is_asked_for_when_all_else_is_well(capfd):
    """Twice asked, a request counts once, in the limit and in what is kept of it."""
    counters = Counters.alone()
    settings = Settings(limits=Limits(requests_per_minute=1))
    app = client(settings=settings, counters=counters)
    length = {"Content-Length": str(len(BODY))}
    asked = app.simulate_post("/telemetry", headers=length, extras={"fleetcast.body_due": True})
    assert (asked.status_code, rows(app), capfd.readouterr().err) == (100, 0, "")
    assert Totals(counters.shared).all()["fleetcast_http_requests_in_flight"] == 0
    done = post(app, extras={"fleetcast.admitted": True})
    lines = capfd.readouterr().err.splitlines()
    assert (done.status_code, rows(app), len(lines)) == (202, 1, 1)
    assert Totals(counters.shared).all()["fleetcast_http_requests_in_flight"] == 0
    assert post(app).status_code == 429


def test_options_need_no_key_but_count():
    app = limited(requests_per_minute=2, lockout_failures=1)
    result = app.simulate_options("/telemetry", **BAD)
    assert (result.status_code, result.content) == (204, b"")
    assert result.headers["Allow"] == "POST, OPTIONS"
    assert not [name for name in result.headers if name.startswith("access-control")]
    assert [app.simulate_get("/topology").status_code for _ in range(2)] == [200, 429]


def test_head_is_get_without_a_body():
    app = client()
    assert post(app).status_code == 202
    for path in ("/health", "/topology?as_of_utc=2026-01-01", SERIES, "/account/state"):
        got, head = app.simulate_get(path), app.simulate_head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["Content-Length"] == str(len(got.content))


def test_every_answer_carries_the_common_headers():
    app = client()
    for path in ("/health", "/nowhere", "/topology?as_of_utc=x", "/predictions"):
        headers = app.simulate_get(path).headers
        assert headers["Content-Type"] == "application/json"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert len(headers["X-Request-Id"]) == 32


def test_only_a_key_that_was_sent_and_is_no_good_counts():
    app = limited(requests_per_minute=0, lockout_failures=1)
    app.stores.make_poor_keys()
    expected = {"off": 403, "none": 403, None: 401, "good": 200, "bad": 401}
    for key, status in expected.items():
        assert app.simulate_get("/topology", headers={"x-api-key": key}).status_code == status
    assert app.simulate_get("/topology").json == {"error": "auth_lockout"}


@pytest.mark.parametrize(
    ("path", "code"),
    [("/telemetry", "entitlement_unavailable"), ("/topology", "auth_unavailable")],
)
def test_an_unreadable_control_store(path, code):
    app = client()
    app.stores.move("control", away=True)
    result = app.simulate_request(ROUTES[path].allowed[0], path)
    assert (result.status_code, result.headers["Retry-After"]) == (503, "5")
    assert result.json == {"error": code, "retry_after_seconds": 5}
    app.stores.move("control", away=False)
    assert app.simulate_get("/topology").status_code == 200


@pytest.mark.parametrize("path", ["/telemetry", "/topology", SERIES, "/account/state"])
def test_a_store_that_fails_during_an_operation_is_opened_anew(path):
    app = client()
    app.stores.plane().close()

    def answer():
        return post(app) if path == "/telemetry" else app.simulate_get(path)

    failed = answer()
    assert (failed.status_code, failed.json["error"]) == (503, "telemetry_unavailable")
    assert answer().status_code == (202 if path == "/telemetry" else 200)


def test_what_nobody_foresaw_is_not_told():  # J9
    result = failing(RuntimeError("secret")).simulate_get("/topology")
    assert result.status_code == 500
    expected = {"error": "internal_error", "request_id": result.headers["X-Request-Id"]}
    assert result.json == expected


def test_content_types():
    app = client()
    for content_type, status in {
        "application/json": 202,
        "Application/JSON; charset=utf-8": 202,
        "application/vnd.fleet+json;v=1": 202,
        "text/json": 422,
        "text/plain": 422,
        "application/x-www-form-urlencoded": 422,
        "": 422,
    }.items():
        result = post(app, headers={"Content-Type": content_type})
        assert result.status_code == status, content_type


def test_cors_grants_what_is_on_the_list_and_nothing_else():
    app = client(settings=replace(UNLIMITED, http=Http(cors_origins=("https://a.example",))))
    for method in ("GET", "OPTIONS"):
        for path in ("/topology", "/nowhere"):
            ours = {"Origin": "https://a.example"}
            granted = app.simulate_request(method, path, headers=ours).headers
            assert granted["Vary"] == "Origin"
            assert granted["Access-Control-Allow-Origin"] == "https://a.example"
            assert "Retry-After" in granted["Access-Control-Expose-Headers"]
            assert "Access-Control-Allow-Credentials" not in granted
            for origin in ("https://b.example", "null", "*"):
                other = app.simulate_request(method, path, headers={"Origin": origin}).headers
                assert other["Vary"] == "Origin"
                assert "Access-Control-Allow-Origin" not in other
    preflight = app.simulate_options("/telemetry", headers={"Origin": "https://a.example"})
    assert preflight.headers["Access-Control-Allow-Headers"] == "x-api-key, content-type"
    assert preflight.headers["Access-Control-Allow-Methods"] == "POST, OPTIONS"


@pytest.mark.parametrize(
    ("error", "is_open"), [(StoreUnavailable("disk"), False), (StoreFull("disk"), True)]
)
def test_a_store_that_failed_is_released_and_a_full_disk_is_not(error, is_open):
    app = failing(error)
    plane = app.stores.plane()
    assert app.simulate_get("/topology").status_code == 503
    with nullcontext() if is_open else pytest.raises(StoreUnavailable, match="closed"):
        plane.ping()


@pytest.mark.parametrize("path", ["/%74elemetry", "/topology%2Fseries", "/telemetry%00"])
def test_a_path_spelled_otherwise_is_another_path(path):
    result = client().simulate_get("/telemetry", extras={"RAW_PATH": path})
    assert (result.status_code, result.json) == (404, {"error": "not_found"})
