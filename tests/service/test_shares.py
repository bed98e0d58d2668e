"""N6, N9: a tenant at its bounds on the real service, and another one that notices nothing."""

from __future__ import annotations

import select
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from fleetcast.security.master_key import load_master_key
from tests.conformance.api import RawClient, accounts_of, at, record
from tests.maintenance.stopped_writer import stopped_writer
from tests.waiting import PATIENCE_SECONDS, until

from .service import prepare, running, start

THREADS = 2
RECORDS = 1_000
TEXT = "x" * 900  # a record that comes back as a kilobyte
SHARE_BYTES = 64 * 1_048_576


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    data = tmp_path_factory.mktemp("shares") / "data"
    options = ("--admin", "127.0.0.1:0", "--workers", "1", "--threads", str(THREADS))
    with running(data, *options) as started:
        yield from accounts_of(started, data)


def raw(service, **options):
    return RawClient(int(service.address.rsplit(":", 1)[1]), **options)


def gauge(service, name):
    wire = HTTPConnection(urlsplit(service.ready["admin"]).netloc, timeout=PATIENCE_SECONDS)
    wire.request("GET", "/metrics")
    lines = wire.getresponse().read().decode().splitlines()
    wire.close()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def get(path, key):
    return f"GET {path} HTTP/1.1\r\nx-api-key: {key}\r\n\r\n".encode()


def test_n6_answers_that_nobody_reads_are_bounded_and_hurt_no_other_tenant(accounts):
    """Far more is asked for than a tenant may leave unread; a read waits for room, and gets it."""
    service, bad, good = accounts.service, accounts.tenant(), accounts.tenant()
    for batch in range(8):
        entities = (f"{batch}-{number}" for number in range(RECORDS))
        records = [record("2100-01-01", entity, text=TEXT) for entity in entities]
        assert bad.post(records).status == 202
    size = len(bad.get("/topology").body)
    count = 2 * SHARE_BYTES // size
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(raw(service, buffer_bytes=65_536))
            client.send(get("/topology", bad.key))
        until(lambda: gauge(service, "fleetcast_http_unsent_bytes") >= SHARE_BYTES - 2 * size)
        with closing(service.connect()) as wire:
            assert service.post([], key=good.key, connection=wire).status == 202
            assert service.request("GET", "/topology", key=good.key, connection=wire).status == 200
            assert service.post([], key=bad.key, connection=wire).status == 202
        assert gauge(service, "fleetcast_http_unsent_bytes") <= SHARE_BYTES
        waiting = stack.enter_context(raw(service))
        waiting.send(get("/topology", bad.key))
        assert select.select([waiting.sock], [], [], 0)[0] == []
        stack.pop_all().close()
    until(lambda: gauge(service, "fleetcast_http_unsent_bytes") == 0)
    assert bad.get("/topology").status == 200


def test_n6_a_tenant_whose_store_is_stuck_leaves_threads_to_others(accounts):
    """All its requests hang behind a stopped writer, and nobody else's do."""
    service, stuck, good = accounts.service, accounts.tenant(), accounts.tenant()
    settings = accounts.settings.security
    with (
        ThreadPoolExecutor(8) as pool,
        stopped_writer(stuck.plane, load_master_key(accounts.data, settings), "tables"),
        closing(service.connect()) as wire,
    ):
        hung = [pool.submit(stuck.post, [record(at(n), f"new {n}")]) for n in range(8)]
        until(lambda: gauge(service, "fleetcast_http_requests_in_flight") == THREADS)
        for number in range(4):
            wrote = service.post([record(at(number))], key=good.key, connection=wire)
            read = service.request("GET", "/topology", key=good.key, connection=wire)
            assert (wrote.status, read.status) == (202, 200)
        assert not any(each.done() for each in hung)
    assert {each.result().status for each in hung} == {202}


def test_n9_a_request_counts_once_though_its_body_comes_late(tmp_path):
    data = tmp_path / "data"
    key = prepare(data)
    service = start(data, key, "--workers", "1", "--set", "limits.requests_per_minute=2")
    head = f"POST /telemetry HTTP/1.1\r\nx-api-key: {key}\r\nContent-Length: 2\r\n".encode()
    try:
        with raw(service) as client:
            for _ in range(2):
                # The answer shows that its head has been judged.
                client.send(head + b"Expect: 100-continue\r\n\r\n")
                assert client.response().status == 100
                assert client.send(b"[]").response().status == 202
            client.send(head + b"\r\n")
            assert client.response().status == 429
    finally:
        service.stop()
