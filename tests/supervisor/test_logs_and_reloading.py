"""Logs of a running service, and the occasions on which it reads its settings again (B21, B22)."""

import contextlib
import http.client
import json
import os
import signal
import threading
from urllib.parse import urlsplit

import pytest

from tests.waiting import PATIENCE_SECONDS, until

UNLIMITED = ("--set", "limits.requests_per_minute=0", "--grpc", "off", "--admin", "off")


class Log:
    """The log of a service, line by line, kept whole."""

    def __init__(self, service):
        self.text = ""
        self._service = service

    def until(self, event, **values):
        """Waits for a line."""
        while True:
            line = self._service.line()
            self.text += line
            document = json.loads(line)
            if document["event"] == event and values.items() <= document.items():
                return document


@pytest.fixture
def issued(call):
    call("tenant", "create", "acme")
    return call("key", "create", "acme", "--scope", "topology:read")


def request(service, path="/account/state", *, method="GET", body=None, **headers):
    url = urlsplit(service.ready["http"])
    wire = http.client.HTTPConnection(url.hostname, url.port, timeout=PATIENCE_SECONDS)
    with contextlib.closing(wire):
        wire.request(method, path, body=body, headers=headers)
        response = wire.getresponse()
        return response.status, response.headers["X-Request-Id"], response.read()


def test_each_request_is_a_line(serve, issued):
    service = serve(*UNLIMITED)
    log = Log(service)
    status, request_id, body = request(
        service, "/topology?x=y", method="GET", **{"x-api-key": issued["key"]}
    )
    line = log.until("request")
    assert status == 200
    assert line.pop("duration_ms") >= 0
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request",
        "request_id": request_id,
        "method": "GET",
        "route": "/topology",
        "status": 200,
        "error": None,
        "tenant": "acme",
        "key_id": issued["key_id"],
        "client": "127.0.0.1",
        "bytes_in": 0,
        "bytes_out": len(body),
        "level": "info",
        "logger": "fleetcast.access",
        "process": "http",
    }
    _, request_id, _ = request(service, "/not/there", method="POST", body=b"12345")
    line = log.until("request")
    seen = (line["request_id"], line["route"], line["error"], line["bytes_in"])
    assert seen == (request_id, "other", "not_found", 5)


def test_no_key_is_ever_in_the_log(serve, call, issued, data):
    service = serve(*UNLIMITED, "--set", "limits.lockout_failures=2")
    log = Log(service)
    key = issued["key"]
    secret = key.rsplit("_", 1)[1][:32]
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    request(service, **{"x-api-key": key})
    request(service, f"/topology?key={key}")  # B22
    request(service, f"/{key}")
    assert request(service, **{"x-api-key": wrong})[0] == 401
    line = log.until("authentication failed")
    assert (line["audit"], line["key_id"], line["process"]) == (True, None, "http")
    call("key", "revoke", issued["key_id"])
    line = log.until("key revoked")
    assert (line["audit"], line["tenant"], line["key_id"]) == (True, "acme", issued["key_id"])
    _, request_id, _ = request(service, **{"x-api-key": key})
    line = log.until("authentication failed", key_id=issued["key_id"])
    assert line["request_id"] == request_id
    new = call("key", "create", "acme", "--scope", "topology:read")["key"]
    log.until("key created")
    _, _, rest = service.stop()
    everything = log.text + rest + (data / "audit.log").read_text()
    for text in (key, wrong, secret, new, new.rsplit("_", 1)[1][:32]):
        assert text not in everything


def test_changes_of_accounts_are_kept(call, issued, data):
    call("tenant", "set", "acme", "--live-ingest", "off")
    call("key", "rotate", issued["key_id"])
    call("tenant", "delete", "acme", "--yes")
    assert (data / "audit.log").stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in (data / "audit.log").read_text().splitlines()]
    assert [line["event"] for line in lines] == [
        "tenant created",
        "key created",
        "tenant changed",
        "key rotated",
        "tenant changed",
        "tenant data destroyed",
        "tenant deleted",
    ]
    assert all(line["audit"] and line["tenant"] == "acme" for line in lines)


def put(file, text):
    """Replaces the settings at one blow: the service may look at them at any moment."""
    new = file.with_name("new.toml")
    new.write_text(text)
    new.replace(file)


def batches(service, key, size):
    body = json.dumps([None] * size).encode()
    return request(service, "/telemetry", method="POST", body=body, **{"x-api-key": key})[0]


@pytest.fixture
def writer(call):
    call("tenant", "create", "acme")
    return call("key", "create", "acme", "--scope", "telemetry:write")["key"]


@pytest.mark.parametrize("by_signal", [True, False])
def test_settings_change_while_it_runs(serve, data, writer, by_signal):
    """By SIGHUP, and by the file alone."""
    file = data / "fleetcast.toml"
    environment = file.read_text()
    service = serve(*UNLIMITED)
    log = Log(service)
    processes = service.children()

    def change(text):
        put(file, environment + text)
        if by_signal:
            service.process.send_signal(signal.SIGHUP)

    assert batches(service, writer, 3) == 422
    change("[limits]\nbatch_records_max = 2\n")
    line = log.until("settings reloaded")
    assert line["settings"] == ["limits.batch_records_max"]
    # In force for every request from now on, whichever worker takes it.
    assert {batches(service, writer, 3) for _ in range(8)} == {413}
    change("[limits]\nbatch_records_max = 0\n")
    line = log.until("settings not reloaded")
    assert "limits.batch_records_max" in line["problem"]
    assert batches(service, writer, 3) == 413
    change("[limits]\nbatch_records_max = 3\nbody_bytes_max = 1024\n[http]\nworkers = 7\n")
    assert log.until("settings need a restart")["settings"] == ["http.workers"]
    log.until("settings reloaded")
    assert {batches(service, writer, 3) for _ in range(8)} == {422}
    assert {batches(service, writer, 300) for _ in range(8)} == {413}
    change("[limits]\nbody_bytes_max = 4194304\nbatch_records_max = 1000000\n")
    log.until("settings reloaded")
    assert {batches(service, writer, 400_000) for _ in range(4)} == {422}
    assert service.children() == processes


def test_what_was_given_at_the_start_wins_over_the_file(serve, data, writer):
    service = serve(*UNLIMITED, "--set", "limits.batch_records_max=2")
    log = Log(service)
    put(data / "fleetcast.toml", "[limits]\nbatch_records_max = 5\ntags_max = 3\n")
    assert log.until("settings reloaded")["settings"] == ["limits.tags_max"]
    assert batches(service, writer, 3) == 413


def test_n8_an_exempt_network_is_in_force_at_once(serve, data):
    service = serve("--set", "limits.requests_per_minute=1")
    log = Log(service)

    def statuses():
        return [request(service, "/health")[0] for _ in range(3)]

    assert statuses() == [200, 429, 429]
    put(data / "fleetcast.toml", '[limits]\nexempt = ["127.0.0.0/8"]\n')
    assert log.until("settings reloaded")["settings"] == ["limits.exempt"]
    assert statuses() == [200, 200, 200]
    put(data / "fleetcast.toml", "[limits]\nexempt = []\n")
    log.until("settings reloaded")
    assert statuses()[1:] == [429, 429]


def test_a_reload_drops_no_request(serve, data, writer):
    service = serve(*UNLIMITED)
    log = Log(service)
    url = urlsplit(service.ready["http"])
    stop = threading.Event()
    answered = threading.Semaphore(0)
    outcomes = []

    def keep_asking():
        wire = http.client.HTTPConnection(url.hostname, url.port, timeout=PATIENCE_SECONDS)
        with contextlib.closing(wire):
            while not stop.is_set():
                wire.request("GET", "/account/state", headers={"x-api-key": writer})
                response = wire.getresponse()
                response.read()
                outcomes.append(response.status)
                answered.release()

    threads = [threading.Thread(target=keep_asking) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(5):
        text = f"[limits]\nbatch_records_max = {number + 1}\n"
        put(data / "fleetcast.toml", text)
        os.kill(service.process.pid, signal.SIGHUP)
        log.until("settings reloaded")
        # So that requests are under way at every reload.
        for _ in threads:
            assert answered.acquire(timeout=PATIENCE_SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    assert set(outcomes) == {200}


def test_a_worker_that_starts_late_has_the_settings_in_force(serve, data, writer, wait_for_end):
    service = serve(*UNLIMITED, "--workers", "1")
    log = Log(service)
    put(data / "fleetcast.toml", "[limits]\nbatch_records_max = 2\n")
    log.until("settings reloaded")
    for victim in service.children()[::2]:  # the arbiter of HTTP, and its worker
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        assert wait_for_end([victim])

    def status():
        with contextlib.suppress(OSError):
            return batches(service, writer, 3)

    assert until(status) == 413
