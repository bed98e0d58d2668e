"""A connection that rested may be gone: what is safe to send again is, and nothing else."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from fleetcast.client import ApiError, Client

WAIT = 60
RECORD = {"measurement": "link", "tags": {"entity_id": "a"}, "fields": {"n": 1}}
TIMED = RECORD | {"time": "2026-01-01T00:00:00Z"}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
TAKEN = b'HTTP/1.1 202 Accepted\r\nContent-Length: 21\r\n\r\n{"accepted_count": 1}'


def test_the_first_call_after_the_service_closed_the_connection(own):  # A22
    """The service ends and comes back: to the client that is what a minute of rest is."""
    now = datetime.now(UTC)
    service = own()
    with Client(service.ready["http"], own.key) as client:
        client.write([RECORD | {"time": now}])
        assert service.stop() == 0
        own("--http", urlsplit(service.ready["http"]).netloc)
        assert client.write([RECORD | {"time": now}])["accepted_count"] == 1
        assert client.account()["usage"]["records_accepted_total"] == 2


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("301 Moved Permanently\r\nLocation: https://127.0.0.1/telemetry", b""),
        ("308 Permanent Redirect\r\nLocation: https://127.0.0.1/telemetry", b"{}"),
        ("200 OK\r\nContent-Type: text/html", b"<html>Sign in</html>"),
        ("202 Accepted", b"[]"),
        ("204 No Content", b""),
    ],
)
@pytest.mark.parametrize("call", [lambda client: client.write([TIMED]), Client.account])
def test_an_answer_that_is_not_the_services_raises(head, body, call):
    """A proxy's redirect or page was taken for an acknowledgement, and the batch was lost."""
    peer = Peer([f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body])
    peer.start()
    with Client(peer.url, "key") as client, pytest.raises(ApiError) as raised:
        call(client)
    peer.join()
    peer.listener.close()
    assert (raised.value.status, raised.value.code) == (int(head[:3]), None)


@pytest.mark.parametrize("body", ["{}", '{"status": "ok"}', '{"accepted_count": true}'])
@pytest.mark.parametrize(
    "call", [lambda client: client.write([TIMED]), lambda client: client.was_stored([TIMED])]
)
def test_an_object_that_is_not_the_services_raises(body, call):
    """A write that such an answer seemed to acknowledge was lost."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
    with peer([(head + body).encode()]) as (_, client), pytest.raises(ApiError) as raised:
        call(client)
    assert (raised.value.status, raised.value.code) == (200, None)


@pytest.mark.parametrize("error", ['{"code": 400}', '["invalid_input"]', "400", "null"])
def test_the_code_of_an_error_is_a_text_or_none(error):
    """The object of a proxy ended the MQTT bridge, which looks codes up in a set."""
    body = f'{{"error": {error}}}'
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(body)}\r\n\r\n"
    with peer([(head + body).encode()]) as (_, client), pytest.raises(ApiError) as raised:
        client.account()
    assert raised.value.code is None


class Peer(threading.Thread):
    """Answers requests, one list of answers for each connection; `None` closes without one."""

    def __init__(self, *connections):
        super().__init__()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(WAIT)
        self.connections = connections
        self.methods = []

    @property
    def url(self):
        return "http://{}:{}".format(*self.listener.getsockname())

    def run(self):
        for answers in self.connections:
            with self.listener.accept()[0] as wire, wire.makefile("rb") as reader:
                for answer in answers:
                    self.take(reader)
                    if answer is not None:
                        wire.sendall(answer)

    def take(self, reader):
        self.methods.append(reader.readline().split()[0].decode())
        size = 0
        while (line := reader.readline()) != b"\r\n":
            name, _, value = line.decode().partition(":")
            size = int(value) if name.lower() == "content-length" else size
        reader.read(size)


@contextmanager
def peer(*connections):
    started = Peer(*connections)
    started.start()
    try:
        with Client(started.url, "key", timeout_seconds=WAIT) as client:
            yield started, client
    finally:
        started.join()
        started.listener.close()


def write(client):
    return client.write([RECORD | {"time": "2026-01-01"}])


def test_a_connection_that_has_ended_is_not_written_to():
    with peer([ANSWER], [TAKEN], [ANSWER]) as (other, client):
        for ask in (client.account, lambda: write(client), client.account):
            ask()
            # The end is there when it can be read, which is when nothing else can be.
            assert client._connection._http.sock.recv(1, socket.MSG_PEEK) == b""
    assert other.methods == ["GET", "POST", "GET"]


def test_a_read_that_meets_the_end_of_its_connection_is_repeated_once():
    with peer([ANSWER, None], [ANSWER]) as (other, client):
        assert client.account() == client.account() == {}
    assert other.methods == ["GET"] * 3
    with peer([ANSWER, None], [None]) as (other, client):
        client.account()
        with pytest.raises(ConnectionError):
            client.account()
    assert other.methods == ["GET"] * 3


def test_a_write_that_meets_the_end_of_its_connection_is_not_repeated():  # F7
    with peer([TAKEN, None], [ANSWER]) as (other, client):
        write(client)
        with pytest.raises(ConnectionError):
            write(client)
        assert client.account() == {}  # over another connection
    assert other.methods == ["POST", "POST", "GET"]


def test_what_fails_on_a_new_connection_is_not_repeated():
    with peer([None], [ANSWER]) as (other, client):
        with pytest.raises(ConnectionError):
            client.account()
        client.account()
    assert other.methods == ["GET"] * 2


def test_an_answer_that_is_cut_off_is_a_lost_connection():
    with peer([ANSWER[:-1]], [ANSWER]) as (_, client):
        with pytest.raises(ConnectionError, match="cut off"):
            write(client)
        assert client.account() == {}
