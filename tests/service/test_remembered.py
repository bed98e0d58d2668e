"""Writes served by what was decided a moment ago: nothing outlives what the decision rested on.

Each test first writes until a write was served by a verdict, so one is there when things change.
"""

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
UNIQUE = re.compile(r'"(request_id|write_id|timestamp)":"[^"]*"|"duration_ms":[0-9.]+')


def remembered(service):
    return metrics(service).get("fleetcast_http_remembered_total", 0)


def prime(service, post):
    """Writes until a verdict has served one."""

    def is_remembered():
        before = remembered(service)
        assert post().status == 202
        return remembered(service) > before

    until(is_remembered)


def served(data, *options):
    return start(data, prepare(data), "--admin", "127.0.0.1:0", "--workers", "1", *options)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("remembered") / "data"


@pytest.fixture(scope="module")
def service(data):
    service = served(data, "--set", f'http.cors_origins=["{ORIGIN}"]')
    yield service
    assert service.stop() == 0


@pytest.fixture(scope="module")
def accounts(service, data):
    yield from accounts_of(service, data)


@pytest.fixture
def tenant(service, accounts):
    """A tenant that a verdict lets write."""
    tenant = accounts.tenant()
    prime(service, lambda: tenant.post([RECORD]))
    return tenant


def test_both_ways_answer_and_account_alike(service, data, accounts):
    """The same fields in the same order, but for ids and times; every request in every book."""
    tenant, headers = accounts.tenant(), {"origin": ORIGIN, "content-type": "application/json"}
    records = [RECORD, {**RECORD, "time": "1999-01-01"}, {**RECORD, "time": "2100-01-01"}]
    body = json.dumps(records).encode()
    before, answers = metrics(service), []

    def post():
        answer = service.request("POST", "/telemetry", key=tenant.key, body=body, headers=headers)
        answers.append(answer)
        return answer

    prime(service, post)
    first, last = answers[0], answers[-1]
    assert [*first.headers] == [*last.headers]
    differing = {name for name in first.headers if first.headers[name] != last.headers[name]}
    assert differing <= {"Date", "x-request-id"}
    assert last.headers["access-control-allow-origin"] == ORIGIN
    assert UNIQUE.sub("", first.body.decode()) == UNIQUE.sub("", last.body.decode())
    assert (last.json["accepted_count"], last.json["rejected_indices"]) == (2, [1])
    lines = [
        line
        for line in (data / "serve.log").read_text().splitlines()
        if f'"tenant":"{tenant.name}"' in line and '"event":"request"' in line
    ]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert [json.loads(line)["request_id"] for line in lines] == ids
    assert len({*ids}) == len(ids)
    assert len({UNIQUE.sub("", line) for line in lines}) == 1
    after, count = metrics(service), len(answers)

    def grown(name):
        return after.get(name, 0) - before.get(name, 0)

    of_tenant = f'{{tenant="{tenant.name}",transport="http"}}'
    assert grown(f"fleetcast_records_accepted_total{of_tenant}") == 2 * count
    assert grown(f"fleetcast_records_rejected_total{of_tenant}") == count
    assert grown(f"fleetcast_records_clamped_total{of_tenant}") == count
    route = 'method="POST",route="/telemetry",status="202"'
    assert grown(f"fleetcast_http_requests_total{{{route}}}") == count
    assert grown('fleetcast_http_request_seconds_count{route="/telemetry"}') == count
    assert grown("fleetcast_commit_seconds_count") == count
    assert after["fleetcast_http_requests_in_flight"] == 0
    assert tenant.get("/account/state").json["usage"]["requests_total"] == count


def test_usage_that_is_stored_ends_no_verdict(service, data, accounts, tenant):
    """So a key that writes once a second, as usage is stored, is not decided anew each time."""

    def is_stored(count):
        with accounts.store.read() as tables:
            usage, last = tables.usage(tenant.plane.name), tables.transaction_id
        if usage is None or usage.requests < count:
            return False
        words = (data / "control" / "usage.span").read_text().split()
        return int(words[4]) == last

    def is_remembered():
        count = 1 + tenant.get("/account/state").json["usage"]["requests_total"]
        until(lambda: is_stored(count))
        before = remembered(service)
        assert tenant.post([RECORD]).status == 202
        return remembered(service) > before

    until(is_remembered)  # a slow machine may take too long once


def test_a_revoked_key_writes_nothing_more(accounts, service):
    for _ in range(ROUNDS):
        tenant = accounts.tenant()
        prime(service, lambda tenant=tenant: tenant.post([RECORD]))
        accounts.revoke(tenant.key)
        assert refusal(tenant.post([RECORD])) == (401, {"error": "auth_failed"})


def test_a_disabled_tenant_writes_nothing_more(accounts, tenant):
    accounts.tenants.change(tenant.name, disabled=True)
    assert refusal(tenant.post([RECORD])) == (403, {"error": "tenant_disabled"})
    accounts.tenants.change(tenant.name, disabled=False)
    assert tenant.post([RECORD]).status == 202


def test_a_tenant_that_is_no_longer_entitled_writes_nothing_more(accounts, tenant):
    accounts.tenants.change(tenant.name, live_ingest=False)
    assert refusal(tenant.post([RECORD])) == (403, {"error": "live_ingest_not_entitled"})


def test_a_deleted_tenant_writes_nothing_more(accounts, tenant):
    accounts.tenants.delete(tenant.name)
    assert refusal(tenant.post([RECORD])) == (401, {"error": "auth_failed"})


def test_a_key_ends_on_time(service, accounts):
    """Whatever comes from then on is refused, each of many a second."""
    tenant = accounts.tenant()
    seconds = 8  # more than it takes until a write was remembered
    key = accounts.key(tenant.name, lifetime_seconds=seconds)
    ends_at = time.time() + seconds  # or earlier: keys have whole seconds
    prime(service, lambda: tenant.post([RECORD], key=key))
    statuses = []
    while not statuses or statuses[-1] == 202:
        began_at = time.time()
        statuses.append(tenant.post([RECORD], key=key).status)
        assert statuses[-1] == 401 or began_at < ends_at
    assert statuses[-1] == 401


def test_a_plane_that_is_away_is_not_written_to(tenant):
    away = tenant.plane.with_name("away")
    shutil.move(tenant.plane, away)
    assert tenant.post([RECORD]).status == 503
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


def test_settings_hold_for_the_next_write(service, data, tenant):
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
    prime(service, lambda: tenant.post([RECORD]))
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
def test_another_value_of_what_decides_is_decided_anew(service, tenant, changes, status):
    headers = {"x-api-key": tenant.key, "content-type": "application/json", **changes}
    before = remembered(service)
    answer = service.request("POST", "/telemetry", key=None, body=b"[]", headers=headers)
    assert (answer.status, remembered(service)) == (status, before)


def test_what_is_refused_is_refused_in_the_same_words(service, accounts, tenant):
    """And none of it is stored."""
    other = accounts.tenant()
    assert other.post([RECORD]).status == 202
    rows = [tenant.rows(), other.rows()]
    before = remembered(service)
    text = {**RECORD, "fields": {"snr_db": "text"}}
    for body in (b"[", b"[1]", b"{}", json.dumps([RECORD, text]).encode()):
        one, two = tenant.post(body), other.post(body)
        assert one.status >= 400
        assert (one.status, one.body) == (two.status, two.body)
    assert remembered(service) == before
    assert [tenant.rows(), other.rows()] == rows


def test_a_body_that_comes_late_is_awaited_by_the_verdict(service, tenant):
    """Its head is answered with nothing until then."""
    body = json.dumps([RECORD]).encode()
    head = (
        "POST /telemetry HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        f"X-Api-Key: {tenant.key}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    def post():
        with raw(service) as client:
            client.send(head + body[:10])
            assert service.get("/health").status == 200
            return client.send(body[10:]).response()

    prime(service, post)


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
        assert remembered(limited) > 0
        for _ in range(ROUNDS):
            refused = limited.post([RECORD])
            assert refusal(refused) == (429, {"error": "rate_limited"})
            assert int(refused.headers["Retry-After"]) > 0

    def test_who_is_locked_out_is_so_with_a_good_key(self, limited):
        prime(limited, lambda: limited.post([RECORD]))
        bad = limited.key[:-1] + ("0" if limited.key[-1] != "0" else "1")
        for _ in range(self.FAILURES):
            assert limited.post([RECORD], key=bad).status == 401
        assert refusal(limited.post([RECORD])) == (429, {"error": "auth_lockout"})
