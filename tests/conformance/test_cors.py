"""K: cross-origin requests."""

from __future__ import annotations

import pytest

from fleetcast.config import Override, resolve
from fleetcast.errors import SettingsError

from .api import at, raw

OURS = ["https://console.example", "http://localhost:3000"]
FOREIGN = [
    *("https://console.example.evil", "https://evil.example", "http://console.example", "null"),
    *("https://console.example:444", "https://CONSOLE.example", "*", "https://console.example/"),
    "https://console.example, http://localhost:3000",
]
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "x-api-key, x-other",
}
PATHS = {
    "/telemetry": {"POST"},
    "/topology": {"GET", "HEAD"},
    "/topology/series": {"GET", "HEAD"},
    "/account/state": {"GET", "HEAD"},
    "/health": {"GET", "HEAD"},
}


def granted(answer):
    return {name.lower(): value for name, value in answer.headers.items() if is_grant(name)}


def is_grant(name):
    return name.lower().startswith("access-control-")


def words(text):
    return {word.strip().lower() for word in text.split(",")}


@pytest.mark.parametrize(("path", "methods"), PATHS.items())
def test_k1_without_origins_there_is_no_cors(service, path, methods):
    headers = {"Origin": OURS[0], **PREFLIGHT}
    answer = service.request("OPTIONS", path, key=None, headers=headers)
    assert (answer.status, answer.body) == (204, b"")
    assert {word.strip() for word in answer.headers["Allow"].split(",")} >= methods
    assert granted(answer) == {}
    assert granted(service.request("GET", "/health", key=None, headers=headers)) == {}


@pytest.mark.parametrize("origin", OURS)
@pytest.mark.parametrize(("path", "methods"), PATHS.items())
def test_k2_k3_a_preflight_needs_no_key_and_grants_a_fixed_list(tuned, path, methods, origin):
    headers = {"Origin": origin, **PREFLIGHT}
    answer = tuned.service.request("OPTIONS", path, key=None, headers=headers)
    assert (answer.status, answer.body) == (204, b"")
    grants = granted(answer)
    assert grants["access-control-allow-origin"] == origin
    assert words(grants["access-control-allow-headers"]) == {"x-api-key", "content-type"}
    assert {w.strip() for w in grants["access-control-allow-methods"].split(",")} >= methods
    assert "access-control-allow-credentials" not in grants


@pytest.mark.parametrize("origin", [None, *OURS, *FOREIGN])
def test_k4_k6_vary_is_always_there_and_only_listed_origins_are_granted(tuned, origin):
    fields = {} if origin is None else {"Origin": origin}
    for method, path in (("GET", "/topology"), ("OPTIONS", "/topology"), ("GET", "/health")):
        answer = tuned.service.request(method, path, key=tuned.key, headers=fields)
        assert "origin" in words(answer.headers["Vary"])
        found = granted(answer).get("access-control-allow-origin")
        assert found == (origin if origin in OURS else None)
        if origin not in OURS:
            assert granted(answer) == {}


@pytest.mark.parametrize(
    ("method", "path", "key", "status"),
    [
        ("GET", "/topology", "nonsense", 401),
        ("GET", "/nowhere", None, 404),
        ("DELETE", "/topology", None, 405),
        ("GET", "/topology?freshness_seconds=0", "", 422),
        ("POST", "/telemetry", "", 422),
    ],
)
def test_k5_a_browser_can_read_errors(tuned, method, path, key, status):
    answer = tuned.service.request(
        method, path, key=tuned.key if key == "" else key, headers={"Origin": OURS[0]}
    )
    assert answer.status == status
    grants = granted(answer)
    assert grants["access-control-allow-origin"] == OURS[0]
    assert "retry-after" in words(grants["access-control-expose-headers"])
    assert "origin" in words(answer.headers["Vary"])


def test_k6_two_origins_are_none(tuned):
    with raw(tuned.service) as client:
        text = f"GET /health HTTP/1.1\r\nOrigin: {OURS[0]}\r\nOrigin: {OURS[1]}\r\n\r\n"
        assert granted(client.send(text.encode()).response()) == {}


@pytest.mark.parametrize("origin", ["*", "null", "https://*.example", "https://a.example/x", ""])
def test_k6_what_is_no_origin_is_refused_at_the_start(data, origin):
    override = Override("http.cors_origins", f'["{origin}"]', "--set")
    with pytest.raises(SettingsError, match="cors_origins"):
        resolve(data, {}, [override])


def test_a_browser_may_write_and_read(tuned):
    headers = {"Origin": OURS[0], "Content-Type": "application/json"}
    body = b'[{"measurement":"link","time":"%s","tags":{"entity_id":"e"},"fields":{"a":1}}]'
    written = tuned.service.request(
        "POST", "/telemetry", key=tuned.key, headers=headers, body=body % at(1).encode()
    )
    assert (written.status, granted(written)["access-control-allow-origin"]) == (202, OURS[0])
