"""The adapter listener of a running service."""

from __future__ import annotations

import http.client
from contextlib import closing, suppress
from urllib.parse import urlsplit

import pytest

from tests.waiting import PATIENCE_SECONDS, until, until_well

from .service import ask, prepare, running, start

LINE = b"cpu,host=a idle=%d\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    data = tmp_path_factory.mktemp("adapters")
    key = prepare(data)
    (data / "adapters.toml").write_text(
        '[[map]]\nfrom = "cpu"\nto = "telemetry"\nprefix = "cpu_"\nentity = "host"\n'
    )
    options = ("--admin", "127.0.0.1:0", "--set", "adapters.address=127.0.0.1:0")
    running = start(data, key, *options)
    yield running
    running.stop()


def connect(service):
    return http.client.HTTPConnection(
        urlsplit(service.ready["adapters"]).netloc, timeout=PATIENCE_SECONDS
    )


def post(wire, service, body, **options):
    headers = {"Authorization": f"Token {service.key}"}
    wire.request("POST", "/api/v2/write", body=body, headers=headers, **options)
    answer = wire.getresponse()
    return answer.status, answer.read()


def newest(service):
    entities = service.get("/topology", measurement="telemetry").json["entities"]
    return next(entity for entity in entities if entity["entity_id"] == "a")


def test_lines_are_read_back_under_their_mapped_names(service):
    with closing(connect(service)) as wire:
        for number in range(3):
            assert post(wire, service, LINE % number) == (204, b"")
    entity = newest(service)
    assert (entity["entity_id"], entity["fields"]) == ("a", {"cpu_idle": 2.0})


def test_a_body_in_chunks_is_taken_and_the_connection_goes_on(service):
    """As Go's clients send what they pack on the way, Telegraf among them."""
    with closing(connect(service)) as wire:
        pieces = (LINE % number for number in (4, 5))
        assert post(wire, service, pieces, encode_chunked=True) == (204, b"")
        assert newest(service)["fields"] == {"cpu_idle": 5.0}
        assert post(wire, service, LINE % 6) == (204, b"")
    assert newest(service)["fields"] == {"cpu_idle": 6.0}


def test_the_public_listener_knows_nothing_of_it(service):
    """# A1"""
    assert service.request("POST", "/api/v2/write", body=LINE % 1).status == 404
    assert service.get("/ping", key=None).status == 404
    with closing(service.connect()) as wire:
        headers = {"x-api-key": service.key, "Transfer-Encoding": "chunked"}
        wire.request("POST", "/telemetry", body=iter([b"[]"]), headers=headers, encode_chunked=True)
        assert wire.getresponse().status == 411


def test_its_requests_are_counted_and_logged_as_all_others(service):
    with closing(connect(service)) as wire:
        assert post(wire, service, LINE % 7)[0] == 204
        assert post(wire, service, b"cpu\n")[0] == 400
    metrics = ask(service, "/metrics").body.decode()
    labels = 'tenant="acme",transport="adapters"'
    assert f"fleetcast_records_accepted_total{{{labels}}}" in metrics
    assert f"fleetcast_records_rejected_total{{{labels}}}" in metrics
    route = 'method="POST",route="/api/v2/write"'
    assert f'fleetcast_http_requests_total{{{route},status="204"}}' in metrics
    assert f'fleetcast_http_requests_total{{{route},status="400"}}' in metrics
    assert 'fleetcast_processes_ready{surface="adapters"} 1' in metrics
    until_well(lambda: ask(service, "/readyz"))


def test_a_write_is_answered_by_the_front_and_a_faulty_one_named(service):
    def answered():
        lines = ask(service, "/metrics").body.decode().splitlines()
        name = "fleetcast_http_answered_by_front_total "
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

    before = answered()
    with closing(connect(service)) as wire:
        assert post(wire, service, LINE % 11) == (204, b"")
        assert answered() == before + 1
        status, body = post(wire, service, b"cpu,host=a idle=12\ncpu x\n")
        assert (status, b"line 2: " in body) == (400, True)
        assert newest(service)["fields"] == {"cpu_idle": 12.0}


def test_its_requests_are_the_tenants_usage(service):
    before = service.get("/account/state").json["usage"]["requests_total"]
    with closing(connect(service)) as wire:
        for number in range(5):
            post(wire, service, LINE % number)
    assert service.get("/account/state").json["usage"]["requests_total"] >= before + 6


def test_a_killed_worker_is_replaced_and_what_it_acknowledged_is_there(service):
    with closing(connect(service)) as wire:
        assert post(wire, service, b"cpu,host=k idle=9")[0] == 204
    service.kill_child("adapters")

    def again():
        with closing(connect(service)) as wire, suppress(OSError, http.client.HTTPException):
            return post(wire, service, b"cpu,host=l idle=1")[0] == 204

    assert until(again)
    entities = service.get("/topology", measurement="telemetry").json["entities"]
    assert {"k", "l"} <= {entity["entity_id"] for entity in entities}


def test_its_rate_limit_is_its_own_whoever_answers(tmp_path):
    rate = 20
    options = [
        *("--set", "adapters.address=127.0.0.1:0", "--set", "limits.requests_per_minute=1"),
        *("--set", f"adapters.requests_per_minute={rate}", "--admin", "127.0.0.1:0"),
    ]
    with running(tmp_path / "data", *options) as limited, closing(connect(limited)) as wire:
        assert [post(wire, limited, LINE % 1)[0] for _ in range(rate + 1)] == [204] * rate + [429]
        assert limited.get("/health").status == 200
        assert limited.get("/health").status == 429
