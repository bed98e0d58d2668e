"""TLS fronts as `integrations/` has them, run by the real programs before a real service."""

import contextlib
import socket
import threading

import pytest

from fleetcast.bench.processes import free_port
from fleetcast.client import GatewayWriter
from tests.integrations.fronts import CONSOLE_HOST, RATE, Behind, Front, haproxy, nginx, record
from tests.integrations.programs import needs
from tests.service.service import ask, command
from tests.waiting import PATIENCE_SECONDS, until

KINDS = [
    pytest.param(nginx, marks=needs("nginx"), id="nginx"),
    pytest.param(haproxy, marks=needs("haproxy"), id="haproxy"),
]
BODY_BYTES_MAX = 1 << 20
KEPT = "max-age=31536000; includeSubDomains"


@contextlib.contextmanager
def fronted(folder, program, *options):
    port = free_port()
    with contextlib.ExitStack() as ends:
        behind = Behind(folder, *options).start()
        ends.callback(behind.stop)
        running = program(behind, port).start()
        ends.callback(running.stop)
        yield Front(behind, port)


@pytest.fixture(scope="module", params=KINDS)
def front(request, tmp_path_factory):
    with fronted(tmp_path_factory.mktemp("front"), request.param) as made:
        yield made


def connections(front) -> float:
    text = ask(front.behind.service, "/metrics").body.decode()
    (line,) = [line for line in text.splitlines() if line.startswith("fleetcast_http_connections ")]
    return float(line.split()[1])


def test_writes_and_reads_on_one_kept_connection(front):
    wire = front.connect()
    assert front.write([record(1), record(2)], wire=wire).status == 202
    connected = wire.sock
    answer = front.ask("GET", "/topology?measurement=link&freshness_seconds=3600", wire=wire)
    assert wire.sock is connected
    assert answer.status == 200
    assert answer.headers["X-Request-Id"]
    (entity,) = [e for e in answer.json["entities"] if e["entity_id"] == "l1"]
    assert entity["fields"] == {"snr_db": 0.5}
    assert front.ask("GET", "/nowhere", wire=wire).json == {"error": "not_found"}
    wire.close()


def test_every_answer_keeps_browsers_to_tls(front):
    for path in ("/account/state", "/nowhere"):
        assert front.ask("GET", path).headers.get_all("Strict-Transport-Security") == [KEPT]
    too_large = {"Content-Type": "application/json", "Content-Length": str(BODY_BYTES_MAX + 1)}
    answer = front.ask("POST", "/telemetry", **too_large)
    assert (answer.status, answer.headers["Strict-Transport-Security"]) == (413, KEPT)


def test_a_request_without_tls_does_not_reach_the_service(front):
    with socket.create_connection(("127.0.0.1", front.port), PATIENCE_SECONDS) as plain:
        plain.sendall(
            b"GET /account/state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nx-api-key: "
            + front.behind.key.encode()
            + b"\r\n\r\n"
        )
        with contextlib.suppress(ConnectionResetError):
            answer = plain.recv(4096)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


def test_nothing_private_is_public(front):  # J11
    for path in ("/metrics", "/readyz", "/livez"):
        assert front.ask("GET", path).status == 404


def test_a_body_of_the_most_bytes_is_taken_and_one_more_is_413_in_json(front):
    """Stage 8, by the front itself."""
    text = b'[{"measurement":"m","time":"2026-01-01T00:00:00Z","fields":{"a":1}}]'
    assert front.write(text.ljust(BODY_BYTES_MAX)).status == 202
    # The head decides: not a byte of the body is sent.
    wire = front.connect()
    wire.putrequest("POST", "/telemetry")
    for name, value in {"x-api-key": front.behind.key, "content-type": "application/json"}.items():
        wire.putheader(name, value)
    wire.putheader("content-length", str(BODY_BYTES_MAX + 1))
    wire.endheaders()
    answer = wire.getresponse()
    assert (answer.status, answer.headers["content-type"].split(";")[0]) == (
        413,
        "application/json",
    )
    assert answer.read() == b'{"error":"request_too_large"}'
    wire.close()


def test_a_body_that_comes_slowly_holds_nobody_up(front):
    with front.raw() as slow:
        slow.sendall(
            b"POST /telemetry HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\nx-api-key: " + front.behind.key.encode() + b"\r\n\r\n[{"
        )
        for _ in range(3):
            assert front.write([record(3, entity="s1")]).status == 202
        if front.behind.buffers:
            return  # the service has not heard of it
        # The service waits no longer than it says, and the front tells of it.
        assert slow.recv(4096).startswith(b"HTTP/1.1 502 ")


def gateway(front):
    authority = (front.behind.public / "ca.pem").read_bytes()
    target = f"localhost:{front.port}"
    return GatewayWriter(target, front.behind.key, authority=authority, on_refused=print)


def test_messages_over_grpc_are_stored(front):
    with gateway(front) as writer:
        for number in range(5):  # calls on one channel
            writer.write(record(number, entity="g1"))
            assert writer.flush(60.0)
        assert writer.tally.accepted == 5
    answer = front.ask("GET", "/topology?measurement=link&freshness_seconds=3600")
    (entity,) = [e for e in answer.json["entities"] if e["entity_id"] == "g1"]
    assert entity["fields"] == {"snr_db": 1.0}


def test_a_large_message_over_grpc_is_stored(front):
    note = "x" * 3000
    with gateway(front) as writer:
        for number in range(900):  # more than a body over HTTP may have
            large = record(0, entity=f"n{number}")
            writer.write({**large, "fields": {"note": note}})
        assert writer.flush(60.0)
        assert writer.tally.accepted == 900


@pytest.mark.parametrize("program", KINDS)
def test_a_rate_limit_is_of_the_client_and_a_claimed_address_changes_nothing(program, tmp_path):
    """B5, B8 and B9 behind a trusted proxy."""
    with fronted(tmp_path, program, f"limits.requests_per_minute={RATE}") as front:
        answers = [
            front.ask(
                "GET", "/account/state", source="127.0.0.2", **{"X-Forwarded-For": f"10.0.0.{n}"}
            )
            for n in range(RATE + 1)
        ]
        assert [answer.status for answer in answers] == [200] * RATE + [429]
        assert answers[-1].json == {"error": "rate_limited"}
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
        assert front.ask("GET", "/account/state", source="127.0.0.3").status == 200


@pytest.mark.parametrize("program", KINDS)
def test_a_service_that_is_away_is_503_and_is_found_again(program, tmp_path):
    with fronted(tmp_path, program) as front:
        front.behind.service.stop()
        answer = front.ask("GET", "/account/state")
        assert (answer.status, answer.json) == (503, {"error": "unavailable"})
        assert answer.headers["Retry-After"] == "1"
        assert answer.headers["Strict-Transport-Security"] == KEPT
        front.behind.start()
        until(lambda: front.ask("GET", "/account/state").status == 200)


@pytest.mark.parametrize("program", KINDS)
def test_many_clients_share_few_connections_to_the_service(program, tmp_path):
    with fronted(tmp_path, program) as front:
        wires = [front.connect() for _ in range(20)]
        for wire in wires:
            assert front.ask("GET", "/account/state", wire=wire).status == 200
        assert connections(front) < len(wires)
        failed = []

        def write(number):
            answer = front.write([record(number, entity=f"c{number}")], wire=wires[number])
            failed.extend([answer] if answer.status != 202 else [])

        threads = [threading.Thread(target=write, args=(n,)) for n in range(len(wires))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        for wire in wires:
            wire.close()


def test_a_chunked_body(front):
    wire = front.connect()
    headers = {"x-api-key": front.behind.key, "Content-Type": "application/json"}
    body = iter([b'[{"measurement":"m","time":"2026-01-01T00:00:00Z",', b'"fields":{"a":1}}]'])
    wire.request("POST", "/telemetry", body, headers, encode_chunked=True)
    assert wire.getresponse().status == (202 if front.behind.buffers else 411)
    wire.close()


@needs("nginx")
def test_the_console_is_reached_by_its_name_and_nothing_else_private(tmp_path):
    with fronted(tmp_path, nginx) as front:
        token = command(front.behind.data, "operator", "token", "--json")["token"]
        host = {"Host": CONSOLE_HOST}
        page = front.ask("GET", "/console/", **host)
        assert (page.status, page.headers["Strict-Transport-Security"]) == (200, KEPT)
        sign_in = {**host, "Authorization": f"Bearer {token}"}
        assert front.ask("POST", "/console/api/session", **sign_in).status == 200
        for path in ("/metrics", "/readyz", "/"):
            assert front.ask("GET", path, **host).status == 404
