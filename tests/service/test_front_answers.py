"""Requests that the front answers by itself: as the application, and by the newest state."""

from __future__ import annotations

import json
import re
import shutil
import time

import pytest

from tests.conformance.api import accounts_of, at, raw, record, refusal
from tests.waiting import until

from .service import prepare, start
from .test_admin import metrics

RECORD = record(at(0))
ROUNDS = 3
ORIGIN = "https://console.example"
READ = f"/topology?as_of_utc={at(60)}&freshness_seconds=3600"
SERIES = f"/topology/series?entity_id=e&measurement=link&start={at(0)}&end={at(60)}"
UNIQUE = re.compile(r'"(request_id|write_id|timestamp)":"[^"]*"|"duration_ms":[0-9.]+')


def answered(service):
    return metrics(service).get("fleetcast_http_answered_by_front_total", 0)


def served(data, *options):
    return start(data, prepare(data), "--admin", "127.0.0.1:0", "--workers", "1", *options)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("front") / "data"


@pytest.fixture(scope="module")
def service(data):
    service = served(data, "--set", f'http.cors_origins=["{ORIGIN}"]')
    yield service
    assert service.stop() == 0


@pytest.fixture(scope="module")
def accounts(service, data):
    yield from accounts_of(service, data)


@pytest.fixture
def tenant(accounts):
    """A tenant that has written."""
    tenant = accounts.tenant()
    assert tenant.post([RECORD]).status == 202
    return tenant


def exchange(service, method, target, key, version, body=b""):
    """The answer to a request of a version: the front answers those of HTTP/1.1 alone."""
    fields = f"Host: a\r\nOrigin: {ORIGIN}\r\nX-Api-Key: {key}\r\n"
    if body:
        fields += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with raw(service) as client:
        return client.send(
            f"{method} {target} {version}\r\n{fields}\r\n".encode() + body
        ).response()


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [("POST", "/telemetry", 202), ("GET", READ, 200), ("GET", SERIES, 200)],
)
def test_both_ways_answer_and_account_alike(service, data, accounts, method, target, status):
    """The same fields in the same order, but for ids and times; every request in every book."""
    tenant, versions = accounts.tenant(), ("HTTP/1.1", "HTTP/1.2") * 2
    records = [RECORD, {**RECORD, "time": "1999-01-01"}, {**RECORD, "time": "2100-01-01"}]
    body = json.dumps(records).encode() if method == "POST" else b""
    before = metrics(service)
    answers = [exchange(service, method, target, tenant.key, version, body) for version in versions]
    count, after = len(answers), metrics(service)
    assert [answer.status for answer in answers] == [status] * count
    assert len({(*answer.headers,) for answer in answers}) == 1
    differing = {
        name for name, text in answers[0].headers.items() if text != answers[1].headers[name]
    }
    assert differing <= {"Date", "x-request-id"}
    assert answers[0].headers["access-control-allow-origin"] == ORIGIN
    assert len({UNIQUE.sub("", answer.body.decode()) for answer in answers}) == 1
    lines = [
        line
        for line in (data / "serve.log").read_text().splitlines()
        if f'"tenant":"{tenant.name}"' in line and '"event":"request"' in line
    ]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert [json.loads(line)["request_id"] for line in lines] == ids
    assert len({*ids}) == len(ids)
    assert len({UNIQUE.sub("", line) for line in lines}) == 1

    def grown(name):
        return after.get(name, 0) - before.get(name, 0)

    route = target.partition("?")[0]
    labels = f'method="{method}",route="{route}",status="{status}"'
    assert grown("fleetcast_http_answered_by_front_total") == count / 2
    assert grown(f"fleetcast_http_requests_total{{{labels}}}") == count
    assert grown(f'fleetcast_http_request_seconds_count{{route="{route}"}}') == count
    assert after["fleetcast_http_requests_in_flight"] == 0
    assert tenant.get("/account/state").json["usage"]["requests_total"] == count
    of_tenant = f'{{tenant="{tenant.name}",transport="http"}}'
    written = count if body else 0
    assert grown(f"fleetcast_records_accepted_total{of_tenant}") == 2 * written
    assert grown(f"fleetcast_records_rejected_total{of_tenant}") == written
    assert grown(f"fleetcast_records_clamped_total{of_tenant}") == written
    assert grown("fleetcast_commit_seconds_count") == written


def test_a_revoked_key_writes_nothing_more(accounts):
    for _ in range(ROUNDS):
        tenant = accounts.tenant()
        assert tenant.post([RECORD]).status == 202
        assert tenant.topology().status == 200
        accounts.revoke(tenant.key)
        assert refusal(tenant.post([RECORD])) == (401, {"error": "auth_failed"})
        assert refusal(tenant.topology()) == (401, {"error": "auth_failed"})


def test_a_disabled_tenant_writes_nothing_more(accounts, tenant):
    accounts.tenants.change(tenant.name, disabled=True)
    assert refusal(tenant.post([RECORD])) == (403, {"error": "tenant_disabled"})
    accounts.tenants.change(tenant.name, disabled=False)
    assert tenant.post([RECORD]).status == 202


def test_a_tenant_that_is_no_longer_entitled_writes_nothing_more(accounts, tenant):
    accounts.tenants.change(tenant.name, live_ingest=False)
    assert refusal(tenant.post([RECORD])) == (403, {"error": "live_ingest_not_entitled"})


def test_a_deleted_tenant_writes_nothing_more(accounts, tenant):
    accounts.delete(tenant)
    assert refusal(tenant.post([RECORD])) == (401, {"error": "auth_failed"})


def test_a_key_ends_on_time(accounts):
    """Whatever comes from then on is refused, each of many a second."""
    tenant = accounts.tenant()
    seconds = 2
    key = accounts.key(tenant.name, lifetime_seconds=seconds)
    ends_at = time.time() + seconds  # or earlier: keys have whole seconds
    statuses = []
    while not statuses or statuses[-1] == 202:
        began_at = time.time()
        statuses.append(tenant.post([RECORD], key=key).status)
        assert statuses[-1] == 401 or began_at < ends_at
    assert statuses[-1] == 401
    assert len(statuses) > 1


def test_a_plane_that_is_away_is_not_written_to(tenant):
    away = tenant.plane.with_name("away")
    shutil.move(tenant.plane, away)
    assert tenant.post([RECORD]).status == tenant.topology().status == 503
    shutil.move(away, tenant.plane)
    assert tenant.post([RECORD]).status == 202


@pytest.mark.parametrize("name", ["plane.mdb", "key"])
def test_a_plane_whose_file_is_another_is_not_written_to(tenant, name):
    file = tenant.plane / name
    other = tenant.plane.with_name("other")
    shutil.copyfile(file, other)
    other.write_bytes(bytes(other.stat().st_size))
    other.replace(file)
    assert tenant.post([RECORD]).status == 503


def test_settings_hold_for_the_next_write(data, tenant):
    file = data / "fleetcast.toml"
    settings, log = file.read_text(), data / "serve.log"
    new = file.with_name("new.toml")

    def change(text):
        before = log.read_text().count("settings reloaded")
        new.write_text(settings + text)
        new.replace(file)
        until(lambda: log.read_text().count("settings reloaded") > before)

    change("[limits]\nbatch_records_max = 1\n")
    assert tenant.post([RECORD]).status == 202
    assert tenant.post([RECORD, RECORD]).status == 413
    change("")
    assert tenant.post([RECORD, RECORD]).status == 202


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"content-type": "text/plain"}, 422),
        ({"content-encoding": "gzip"}, 415),
        ({"x-api-key": "nonsense"}, 401),
    ],
)
def test_what_is_refused_is_the_applications_to_answer(service, tenant, changes, status):
    headers = {"x-api-key": tenant.key, "content-type": "application/json", **changes}
    before = answered(service)
    answer = service.request("POST", "/telemetry", key=None, body=b"[]", headers=headers)
    assert (answer.status, answered(service)) == (status, before)


def test_what_is_refused_is_refused_in_the_same_words(service, tenant):
    """And none of it is stored."""
    rows = tenant.rows()
    text = {**RECORD, "fields": {"snr_db": "text"}}
    for body in (b"[", b"[1]", b"{}", json.dumps([RECORD, text]).encode()):
        one, other = (
            exchange(service, "POST", "/telemetry", tenant.key, version, body)
            for version in ("HTTP/1.1", "HTTP/1.2")
        )
        assert one.status >= 400
        assert (one.status, one.body) == (other.status, other.body)
    assert tenant.rows() == rows


def test_a_body_that_comes_late_is_awaited(service, tenant):
    """Its head is answered with nothing until then."""
    body = json.dumps([RECORD]).encode()
    head = (
        "POST /telemetry HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        f"X-Api-Key: {tenant.key}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    before = answered(service)
    with raw(service) as client:
        client.send(head + body[:10])
        assert service.get("/health").status == 200
        assert client.send(body[10:]).response().status == 202
    assert answered(service) == before + 1


class TestLimits:
    """A service that limits its clients."""

    REQUESTS = 40
    FAILURES = 3

    @pytest.fixture
    def limited(self, tmp_path):
        options = ("--set", f"limits.requests_per_minute={self.REQUESTS}")
        service = served(
            tmp_path / "data", *options, "--set", f"limits.lockout_failures={self.FAILURES}"
        )
        yield service
        assert service.stop() == 0

    def test_each_request_counts_once_whoever_answers_it(self, limited):
        bodies = [json.dumps([RECORD]).encode(), b"[1]"]
        statuses = [limited.post(bodies[n % 5 == 4]).status for n in range(self.REQUESTS)]
        assert statuses == [422 if n % 5 == 4 else 202 for n in range(self.REQUESTS)]
        assert answered(limited) == statuses.count(202)
        for _ in range(ROUNDS):
            refused = limited.post([RECORD])
            assert refusal(refused) == (429, {"error": "rate_limited"})
            assert int(refused.headers["Retry-After"]) > 0

    def test_who_is_locked_out_is_so_with_a_good_key(self, limited):
        assert limited.post([RECORD]).status == 202
        bad = limited.key[:-1] + ("0" if limited.key[-1] != "0" else "1")
        for _ in range(self.FAILURES):
            assert limited.post([RECORD], key=bad).status == 401
        assert refusal(limited.post([RECORD])) == (429, {"error": "auth_lockout"})
