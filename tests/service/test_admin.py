"""The private listener beside a real service (B10, D11, J6, J11)."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import pytest

from fleetcast.accounts import ControlStore
from fleetcast.engine import UsageRecord
from fleetcast.security.master_key import read_master_key
from fleetcast.surface.browser_policy import SECURITY_FIELDS
from tests.conformance.api import raw
from tests.waiting import until, until_well

from .service import ask, command, kill, prepare, running, start

SAMPLE = re.compile(r"[a-z_]+(\{[a-z_]+=\"[^\"]*\"(,[a-z_]+=\"[^\"]*\")*\})? [0-9.e+-]+")
RECORD = {"measurement": "link", "tags": {"entity_id": "a"}, "fields": {"x": 1}}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("admin") / "data", "--admin", "127.0.0.1:0") as started:
        yield started


def metrics(service):
    answer = ask(service, "/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.body.decode().splitlines()
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines)
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def test_probes(service):
    assert ask(service, "/livez").json == {"status": "ok"}
    ready = until_well(lambda: ask(service, "/readyz"))
    assert set(ready.json["checks"]) == {
        *("http", "timeseries_store", "auth_store", "prediction_store", "upkeep")
    }
    assert ready.json["checks"]["upkeep"] == {"ok": True, "failing_count": 0, "failing": []}


def test_the_root_leads_to_the_console(service):
    answer = ask(service, "/")
    assert (answer.status, answer.headers["Location"]) == (302, "/console/")
    assert ask(service, "/nowhere").status == 404


def test_probes_take_nothing_from_a_clients_rate_limit(tmp_path):  # B10
    options = ("--admin", "127.0.0.1:0", "--set", "limits.requests_per_minute=1")
    with running(tmp_path / "data", *options) as limited:
        for _ in range(5):
            until_well(lambda: ask(limited, "/readyz"))
        assert limited.get("/health").status == 200


@pytest.mark.parametrize("path", ["/livez", "/metrics", "/console/", "/console/api/session"])
def test_a_page_whose_name_points_here_reads_nothing(service, path):
    refused = ask(service, path, host="rebound.example.com:9090")
    assert (refused.status, refused.json["error"]) == (421, "unknown_host")


@pytest.mark.parametrize(
    "host", ["LOCALHOST:9090", "console.localhost", "127.0.0.1", "10.1.2.3:9090", "[::1]:9090"]
)
def test_probes_by_address_or_by_a_name_of_loopback_need_no_setting(service, host):
    assert ask(service, "/livez", host=host).json == {"status": "ok"}


def test_names_of_the_listener_are_a_setting_and_an_open_address_is_warned_of(tmp_path):
    names = ("--set", 'admin.hosts=["node1.example.com"]')
    with running(tmp_path / "data", "--admin", "0.0.0.0:0", *names) as opened:
        assert ask(opened, "/livez", host="node1.example.com:9090").status == 200
        assert ask(opened, "/livez", host="node1.example.com.evil.example").status == 421
    lines = map(json.loads, (tmp_path / "data" / "serve.log").read_text().splitlines())
    assert "whoever reaches admin.address may read it" in [line["event"] for line in lines]


def test_the_public_api_is_shown_as_a_page(service):
    shown, sheet = ask(service, "/docs"), ask(service, "/docs.css")
    assert shown.headers["Content-Type"] == "text/html; charset=utf-8"
    assert sheet.headers["Content-Type"] == "text/css; charset=utf-8"
    assert {name: shown.headers[name] for name, _ in SECURITY_FIELDS} == dict(SECURITY_FIELDS)
    assert b"GET /topology/series" in shown.body


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/openapi.json", "/docs"])
def test_nothing_of_it_is_public(service, path):  # J11
    assert service.get(path).json == {"error": "not_found"}


def test_what_it_refuses(service):
    assert ask(service, "/telemetry").status == 404
    assert ask(service, "/metrics", "HEAD").body == b""
    refused = ask(service, "/metrics", "POST")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")


def test_requests_and_records_are_counted(service):
    before = metrics(service)
    records = [
        {**RECORD, "time": "2100-01-01"},  # clamped, D11
        {**RECORD, "time": "2026-01-01"},
        {**RECORD, "time": "1999-01-01"},  # rejected, D8
    ]
    assert service.post(records).status == 202
    assert service.post(b"[").status == 422
    assert service.get("/nowhere").status == 404
    # A scrape shows earlier rows of a store that takes long to be read.
    until(lambda: metrics(service).get('fleetcast_tenant_rows{tenant="acme"}') == 2)
    until(lambda: metrics(service).get('fleetcast_tenant_cpu_seconds_total{tenant="acme"}', 0) > 0)
    after = metrics(service)
    grown = {name: after[name] - before.get(name, 0) for name in after}
    written = 'fleetcast_http_requests_total{method="POST",route="/telemetry",status="202"}'
    labels = '{tenant="acme",transport="http"}'
    assert grown[written] == 1
    assert grown['fleetcast_http_refused_total{code="schema_faults"}'] == 1
    assert (
        grown['fleetcast_http_requests_total{method="GET",route="other",status="404"}'] == 1
    )  # a client cannot make labels
    assert grown[f"fleetcast_records_accepted_total{labels}"] == 2
    assert grown[f"fleetcast_records_clamped_total{labels}"] == 1
    assert grown[f"fleetcast_records_rejected_total{labels}"] == 1
    assert grown["fleetcast_commit_seconds_count"] == 1
    assert grown['fleetcast_http_request_seconds_count{route="/telemetry"}'] == 2
    assert after["fleetcast_http_requests_in_flight"] == 0
    assert after['fleetcast_processes_ready{surface="http"}'] == 2
    assert after['fleetcast_tenant_rows{tenant="acme"}'] == 2
    assert after['fleetcast_tenant_series{tenant="acme"}'] == 1
    assert after['fleetcast_tenant_stored_bytes{tenant="acme"}'] > 0
    assert after["fleetcast_resident_memory_bytes"] > 0


def test_spaces_in_a_question_do_not_hide_the_time_that_it_takes(tmp_path):
    """A question of more than a kilobyte was evaluated by a thread whose time did not count."""
    options = ("--admin", "127.0.0.1:0", "--set", "adapters.address=127.0.0.1:0")
    with running(tmp_path / "data", *options) as own:

        def used():
            return metrics(own).get('fleetcast_tenant_cpu_seconds_total{tenant="acme"}', 0)

        def ask_often(spaces):
            query = "sum_over_time(vector(1)[100h:1s])" + " " * spaces
            path = f"/api/v1/query?{urlencode({'query': query, 'time': 1_790_000_000})}"
            with closing(HTTPConnection(urlsplit(own.ready["adapters"]).netloc)) as wire:
                for _ in range(10):
                    wire.request("GET", path, headers={"x-api-key": own.key})
                    found = json.load(wire.getresponse())["data"]["result"]
                    assert found == [{"metric": {}, "value": [1_790_000_000, "360001"]}]

        ask_often(0)
        until(lambda: used() > 0)
        short = used()
        ask_often(2_000)
        until(lambda: used() >= 1.3 * short)


def test_what_the_parser_refuses_is_counted_and_logged(tmp_path):
    """Stage 0: nobody knows the method, the path or the tenant, and the log has no byte of it."""
    data = tmp_path / "data"
    with running(data, "--admin", "127.0.0.1:0") as own:
        for fields in (b"Content-Length: x", b"secret-name : value"):
            with raw(own) as client:
                text = b"POST /telemetry HTTP/1.1\r\n" + fields + b"\r\n\r\n"
                answer = client.send(text).response()
                assert answer.status == 400
        values = metrics(own)
    assert values['fleetcast_http_requests_total{method="other",route="other",status="400"}'] == 2
    assert values['fleetcast_http_refused_total{code="invalid_content_length"}'] == 1
    assert values['fleetcast_http_refused_total{code="bad_request"}'] == 1
    assert values["fleetcast_http_requests_in_flight"] == 0
    text = (data / "serve.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    (line,) = [line for line in lines if line.get("error") == "bad_request"]
    assert line["request_id"] == answer.headers["X-Request-Id"]
    assert (line["status"], line["tenant"], line["client"]) == (400, None, "127.0.0.1")
    assert line["bytes_out"] == len(answer.body)
    assert "secret-name" not in text


def test_requests_past_a_broken_limiter_are_counted(tmp_path):  # B7
    data = tmp_path / "data"
    prepare(data)
    (data / "run").mkdir(exist_ok=True)
    (data / "run" / "limiter").mkdir()
    service = start(data, "", "--admin", "127.0.0.1:0", "--set", "limits.requests_per_minute=1")
    try:
        assert {service.get("/health", key=None).status for _ in range(4)} == {200}
        assert metrics(service)["fleetcast_limiter_failed_open_total"] == 4
    finally:
        service.stop()


def test_one_broken_tenant_spoils_no_scrape(tmp_path):
    with running(tmp_path / "data", "--admin", "127.0.0.1:0") as own:
        account = command(tmp_path / "data", "tenant", "create", "broken")["account_id"]
        (tmp_path / "data" / "planes" / account / "plane.mdb").write_bytes(b"x" * 4096)
        until(lambda: 'fleetcast_tenant_up{tenant="broken"}' in metrics(own))
        values = metrics(own)
    assert values['fleetcast_tenant_up{tenant="broken"}'] == 0
    assert values['fleetcast_tenant_up{tenant="acme"}'] == 1


def test_counters_never_fall_when_workers_are_killed(tmp_path):
    """Every answered request stays counted after kill -9 of whoever counted it."""
    options = ("--admin", "127.0.0.1:0", "--workers", "1")
    answered = 0
    with running(tmp_path / "data", *options) as own:
        for _ in range(3):
            for _ in range(5):
                assert own.get("/account/state").status == 200
                answered += 1
            total = metrics(own)
            name = 'fleetcast_http_requests_total{method="GET",route="/account/state",status="200"}'
            assert total[name] == answered
            usage = own.get("/account/state").json["usage"]
            assert usage["requests_total"] == answered
            answered += 1
            kill(own.workers("http")[0])


def test_unready_while_nobody_serves(tmp_path):
    with running(tmp_path / "data", "--admin", "127.0.0.1:0", "--workers", "1") as own:
        arbiter, worker = own.arbiter("http"), own.workers("http")[0]
        os.kill(arbiter, signal.SIGSTOP)  # or it would start another at once
        kill(worker)
        answer = ask(own, "/readyz")
        assert (answer.status, answer.json["checks"]["http"]) == (503, {"ok": False})
        assert ask(own, "/livez").status == 200
        os.kill(arbiter, signal.SIGCONT)
        assert own.get("/health").status == 200
        until_well(lambda: ask(own, "/readyz"))


def test_usage_survives_restarts(tmp_path):  # J6
    data = tmp_path / "data"
    key = prepare(data)
    created = command(data, "tenant", "show", "acme")["created_at"]
    total = 0
    for _ in range(2):
        service = start(data, key)
        try:
            assert service.post([{**RECORD, "time": "1999-01-01"}]).status == 202
            assert service.post([{**RECORD, "time": "2026-01-01"}]).status == 202
            assert service.get("/health").status == 200  # belongs to nobody
            total += 2
            usage = service.get("/account/state").json["usage"]
            assert usage["requests_total"] == total
            total += 1
            assert usage["period_start"] == created
        finally:
            assert service.stop() == 0
    assert (usage["records_accepted_total"], usage["records_rejected_total"]) == (2, 2)


def test_requests_are_durable_within_a_second_of_a_kill(tmp_path):  # J6
    data = tmp_path / "data"
    key = prepare(data)
    service = start(data, key)
    for _ in range(4):
        service.get("/topology")
    until(lambda: stored_requests(data) == 4)
    service.kill()
    service = start(data, key)
    try:
        assert service.get("/account/state").json["usage"]["requests_total"] == 4
    finally:
        service.stop()


def stored_requests(data):
    store = ControlStore.embedded(data / "control", read_master_key(data / "master.key"))
    with closing(store), store.read() as view:
        return sum(usage.requests for usage in UsageRecord.all(view).values())
