"""The order of the pipeline, and what each stage answers."""

import pytest
from doubles import Counter, Keys, Plane, Planes, client, identity

from fleetcast.config import Settings
from fleetcast.config.sections import Http
from fleetcast.errors import StoreFull, StoreMissing, StoreUnavailable, refused
from fleetcast.http.routes import ROUTES
from fleetcast.metrics import Counters, Totals

BODY = b"[]"
SERIES = "/topology/series?entity_id=a&start=2026-01-01"


def post(app, **kwargs):
    return app.simulate_post("/telemetry", body=BODY, **kwargs)


def key(text):
    return {"headers": {"x-api-key": text}}


def test_stage_by_stage_the_earlier_refusal_wins():
    """Stages 1 to 9: each step mends what the step before complained about."""
    keys = Keys(
        gone=refused("tenant_unknown"),
        off=refused("tenant_disabled"),
        none=identity(scopes=frozenset(), live_ingest=False),
        read=identity(live_ingest=False),
    )
    headers = {"x-api-key": "bad", "Content-Encoding": "gzip", "Content-Type": "text/plain"}
    broken = StoreMissing("gone")

    def answer(limiter=None, plane_error=None, path="/telemetry", size="2000000", **changed):
        app = client(
            keys=keys,
            plane_error=plane_error,
            plane=Plane(error=refused("batch_too_large", max=1000, received=1001)),
            **({} if limiter is None else {"limiter": Counter(limiter)}),
        )
        sent = {**headers, **{name.replace("_", "-"): value for name, value in changed.items()}}
        sent = {name: value for name, value in sent.items() if value is not None}
        if size is not None:
            sent["Content-Length"] = size
        result = app.simulate_post(path, body=BODY if size == "2" else None, headers=sent)
        content = result.json
        return result.status_code, content.get("error") or content["detail"][0]["type"]

    assert answer("rate_limited", path="/nowhere") == (429, "rate_limited")
    assert answer("auth_lockout", path="/nowhere") == (404, "not_found")
    assert answer("auth_lockout", path="/topology") == (405, "method_not_allowed")
    assert answer("auth_lockout") == (429, "auth_lockout")
    assert answer(plane_error=broken) == (401, "auth_failed")
    assert answer(plane_error=broken, x_api_key="off") == (403, "tenant_disabled")
    assert answer(plane_error=broken, x_api_key="gone") == (404, "tenant_unknown")
    assert answer(plane_error=broken, x_api_key="none") == (503, "tenant_unavailable")
    assert answer(x_api_key="none") == (403, "insufficient_scope")
    assert answer(x_api_key="read") == (403, "live_ingest_not_entitled")
    assert answer(x_api_key="good", size=None) == (411, "length_required")
    assert answer(x_api_key="good") == (413, "request_too_large")
    assert answer(x_api_key="good", size="2")[1] == "unsupported_content_encoding"
    mended = {"x_api_key": "good", "Content_Encoding": None}
    assert answer(**mended, size="2") == (422, "content_type")
    mended["Content_Type"] = "application/json"
    assert answer(**mended, size="10") == (400, "invalid_content_length")
    assert answer(**mended, size="0") == (422, "missing")
    assert answer(**mended, size="2") == (413, "batch_too_large")


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


@pytest.mark.parametrize(
    "path",
    [
        *("/", "//telemetry", "/telemetry/", "/Telemetry", "/health/", "/a/../health", "/*"),
        *("/simulations", "/rules", "/rules/a", "/v1/telemetry"),
        *("/metrics", "/openapi.json", "/livez"),
    ],
)
def test_unknown_paths(path):
    for method in ("GET", "POST", "OPTIONS", "DELETE"):
        result = client().simulate_request(method, path)
        assert (result.status_code, result.json) == (404, {"error": "not_found"})


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
    app = client(counters=counters, plane_error=StoreMissing("must not be opened"))
    result = app.simulate_request(method, path, extras={"fleetcast.over_share": True})
    assert (result.status_code, result.json) == (503, body)
    assert result.headers["Retry-After"] == str(body["retry_after_seconds"])
    totals = Totals(counters.shared).all()
    assert totals['fleetcast_refused_over_share_total{surface="http"}'] == 1
    health = app.simulate_get("/health", extras={"fleetcast.over_share": True})
    assert health.status_code == 200


def test_n9_a_body_that_is_due_is_asked_for_when_all_else_is_well():
    """Twice asked, a request counts once, in the limit and in what is kept of it."""
    plane, limiter, log, counters = Plane(), Counter(), [], Counters.alone()
    app = client(plane=plane, limiter=limiter, access_log=log.append, counters=counters)
    length = {"Content-Length": "2"}
    asked = app.simulate_post("/telemetry", headers=length, extras={"fleetcast.body_due": True})
    assert (asked.status_code, plane.asked, log, limiter.admitted) == (100, {}, [], 1)
    assert Totals(counters.shared).all()["fleetcast_http_requests_in_flight"] == 0
    done = post(app, extras={"fleetcast.admitted": True})
    assert (done.status_code, plane.asked["body"], len(log), limiter.admitted) == (202, BODY, 1, 1)
    assert Totals(counters.shared).all()["fleetcast_http_requests_in_flight"] == 0


def test_options_need_no_key_but_count():
    limiter = Counter()
    result = client(limiter=limiter).simulate_options("/telemetry", **key("bad"))
    assert (result.status_code, result.content) == (204, b"")
    assert result.headers["Allow"] == "POST, OPTIONS"
    assert not [name for name in result.headers if name.startswith("access-control")]
    assert (limiter.admitted, limiter.failures) == (1, 0)


def test_head_is_get_without_a_body():
    app = client()
    for path in ("/health", "/topology", SERIES, "/account/state"):
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
    limiter = Counter()
    keys = Keys(off=refused("tenant_disabled"), none=identity(scopes=frozenset()))
    app = client(limiter=limiter, keys=keys)
    for text in ("off", "none", "good"):
        app.simulate_get("/topology", **key(text))
    assert limiter.failures == 0
    assert app.simulate_get("/topology", **key("bad")).status_code == 401
    assert limiter.failures == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [("/telemetry", "entitlement_unavailable"), ("/topology", "auth_unavailable")],
)
def test_an_unreadable_control_store(path, code):
    method = ROUTES[path].methods[0]
    result = client().simulate_request(method, path, **key("down"))
    assert (result.status_code, result.headers["Retry-After"]) == (503, "5")
    assert result.json == {"error": code, "retry_after_seconds": 5}


@pytest.mark.parametrize("path", ["/topology", SERIES, "/account/state"])
def test_a_store_that_fails_during_an_operation(path):
    result = client(plane=Plane(error=StoreUnavailable("disk"))).simulate_get(path)
    assert result.status_code == 503
    assert result.json["error"] == "telemetry_unavailable"


def test_what_nobody_foresaw_is_not_told():  # J9
    result = client(plane=Plane(error=RuntimeError("secret"))).simulate_get("/topology")
    assert result.status_code == 500
    expected = {"error": "internal_error", "request_id": result.headers["X-Request-Id"]}
    assert result.json == expected


@pytest.mark.parametrize(
    ("content_type", "accepted"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/vnd.fleet+json;v=1", True),
        ("text/json", False),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
        ("", False),
    ],
)
def test_content_types(content_type, accepted):
    headers = {"Content-Type": content_type, "x-api-key": "good"}
    assert post(client(), headers=headers).status_code == (202 if accepted else 422)


def test_cors_grants_what_is_on_the_list_and_nothing_else():
    settings = Settings(http=Http(cors_origins=("https://a.example",)))
    app = client(settings=settings, limiter=Counter("auth_lockout"))
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


def test_a_store_that_failed_is_released_and_a_full_disk_is_not():
    for error, released in ((StoreUnavailable("disk"), 1), (StoreFull("disk"), 0)):
        plane = Plane(error=error)
        planes = Planes(plane)
        app = client(plane=plane, planes=planes)
        assert app.simulate_get("/topology").status_code == 503
        assert planes.released == [("a1", plane)] * released


@pytest.mark.parametrize("path", ["/%74elemetry", "/topology%2Fseries", "/telemetry%00"])
def test_a_path_spelled_otherwise_is_another_path(path):
    result = client().simulate_get("/telemetry", extras={"RAW_PATH": path})
    assert (result.status_code, result.json) == (404, {"error": "not_found"})
